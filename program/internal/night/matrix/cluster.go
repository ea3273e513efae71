package matrix

import (
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
)

// clusters reads a cluster definition. It is several clusters if axes in it are lists.
func (r *reader) clusters(v *source.Value) []part {
	var kinds []clusterKind
	var names []string
	for _, k := range clusterKinds {
		names = append(names, k.name)
		if v.Get(k.name) != nil {
			kinds = append(kinds, k)
		}
	}
	before := len(r.problems)
	p := r.part(v, "a cluster", names...)
	switch {
	case v.Kind != source.Document, len(kinds) == 0 && len(r.problems) > before: // probably a misspelled kind
		return []part{p}
	case len(kinds) != 1:
		r.add(v.Position, "a cluster must have exactly one of %s", strings.Join(names, ", "))
		return []part{p}
	}
	kind := kinds[0]
	p.settings = append(r.kindSettings(v.Get(kind.name), kind), p.settings...)
	all := spread(p)
	if slices.ContainsFunc(all, func(p part) bool { return p.name == "" }) {
		r.add(v.Position, "the cluster must have a name, or a topology or version to name it")
	}
	return all
}

func (r *reader) kindSettings(v *source.Value, kind clusterKind) []setting {
	short := kind.keys[0]
	if v.Kind != source.Document {
		v = &source.Value{Position: v.Position, Kind: source.Document,
			Fields: []source.Field{{Key: short.name, KeyPosition: v.Position, Value: v}}}
	}
	if !r.document(v, kind.name, keyNames(kind.keys)) {
		return nil
	}
	if short.shape == text && v.Get(short.name) == nil {
		r.add(v.Position, "%s must have the key %s", kind.name, short.name)
	}
	return r.keyed(v, kind.keys)
}

// spread returns a cluster for each combination of the values of its axes. The values are its name if it has
// none; otherwise the values of axes with several values follow the name.
func spread(p part) []part {
	out := []part{p}
	for i, s := range p.settings {
		if s.key.shape != axis {
			continue
		}
		var next []part
		for _, q := range out {
			for _, v := range s.values {
				one := q
				one.settings = slices.Clone(q.settings)
				one.settings[i].values = []string{v}
				if p.name == "" || len(s.values) > 1 {
					file := v[strings.LastIndexAny(v, `/\`)+1:] // v may be a path
					one.name = strings.TrimPrefix(q.name+"-"+safe(strings.TrimSuffix(file, ".json")), "-")
				}
				next = append(next, one)
			}
		}
		out = next
	}
	return out
}
