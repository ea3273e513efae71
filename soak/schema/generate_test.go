package schema_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/oracle"
)

// A generator makes valid documents from an official schema, so that every key
// that it has is in some document, whether or not our own source knows it.
type generator struct {
	root map[string]any
	rng  *rand.Rand
	all  bool // every key that may be there, instead of some
}

type members = map[string]any

func (g *generator) pick(n int) int { return g.rng.IntN(n) }

// suite makes a document that declares a version.
func (g *generator) suite(version string) any {
	doc := oracle.Object(g.value(g.root, 0))
	doc["schemaVersion"] = version
	return doc
}

func (g *generator) value(s members, depth int) any {
	s = oracle.Resolve(g.root, s)
	if c, ok := s["const"]; ok {
		return c
	}
	if values := oracle.List(s["enum"]); len(values) > 0 {
		return values[g.pick(len(values))]
	}
	if pattern, ok := s["pattern"].(string); ok && strings.Contains(pattern, "0-9") {
		return "4.4"
	}
	s = g.choose(s)
	switch s["type"] {
	case "string":
		return []string{"a", "client0", "", "$$placeholder"}[g.pick(4)]
	case "boolean":
		return g.pick(2) == 0
	case "integer":
		return json.Number([]string{"0", "-1", "7.0", "1e3"}[g.pick(4)])
	case "array":
		return g.array(oracle.Resolve(g.root, oracle.Object(s["items"])), depth)
	case "object":
		return g.object(s, depth)
	default:
		return []any{nil, true, json.Number("1.5"), "x", []any{}, members{}}[g.pick(6)]
	}
}

func (g *generator) array(item members, depth int) any {
	items := []any{}
	if g.all && item["maxProperties"] != nil { // one of each kind
		properties := oracle.Object(item["properties"])
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			items = append(items, members{name: g.value(oracle.Object(properties[name]), depth+1)})
		}
		return items
	}
	for n := 1 + g.pick(2); n > 0; n-- {
		items = append(items, g.value(item, depth+1))
	}
	return items
}

// choose puts one of the alternatives over a schema.
func (g *generator) choose(s members) members {
	for _, keyword := range []string{"oneOf", "anyOf"} {
		all := oracle.List(s[keyword])
		if len(all) == 0 {
			continue
		}
		branch := oracle.Object(all[g.pick(len(all))])
		merged := maps.Clone(s)
		delete(merged, keyword)
		for k, v := range branch {
			if own := oracle.Object(s[k]); k == "properties" && own != nil && branch["additionalProperties"] != false {
				both := maps.Clone(own)
				maps.Copy(both, oracle.Object(v))
				v = both
			}
			if k == "required" {
				v = append(slices.Clone(oracle.List(s[k])), oracle.List(v)...)
			}
			merged[k] = v
		}
		return merged
	}
	return s
}

func (g *generator) object(s members, depth int) any {
	properties := members{}
	for _, keyword := range []string{"properties", "patternProperties"} {
		for pattern, p := range oracle.Object(s[keyword]) {
			for _, name := range oracle.NamesFor(pattern) {
				if p != false {
					properties[name] = p
				}
			}
		}
	}
	if s["additionalProperties"] != false && len(properties) == 0 {
		properties["x"] = oracle.Object(s["additionalProperties"])
	}
	names, doc := slices.Sorted(maps.Keys(properties)), members{}
	put := func(name string) { doc[name] = g.value(oracle.Object(properties[name]), depth+1) }
	if s["maxProperties"] == nil {
		for _, name := range names {
			if slices.Contains(oracle.List(s["required"]), any(name)) || depth < 12 && (g.all || g.pick(10) < 6) {
				put(name)
			}
		}
	}
	if len(doc) == 0 && s["minProperties"] != nil {
		put(names[g.pick(len(names))])
	}
	for _, rule := range oracle.List(s["allOf"]) {
		pair := oracle.List(oracle.Object(oracle.Object(rule)["not"])["required"])
		if _, ok := doc[pair[0].(string)]; ok {
			delete(doc, pair[g.pick(2)].(string))
		}
	}
	return doc
}

// placesOf gives the path of every key that a schema names, with [] for the
// elements of an array.
func placesOf(root members) map[string]bool {
	places := map[string]bool{}
	oracle.Walk(root, func(path string, _ members) {
		if path != "" && !strings.HasSuffix(path, "[]") && !strings.Contains(path, ".*") {
			places[path] = true
		}
	})
	return places
}
