package schema

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/unified-test-runner/utr/format/source"
)

// A derivation derives the JSON schema of one minor version, with only the definitions it references.
type derivation struct {
	minor       int
	definitions members
}

type members map[string]any

func derive(minor int) ([]byte, error) {
	d := &derivation{minor: minor, definitions: members{}}
	root := format[string(suite)].schema(d).(members)
	root["$schema"] = dialect(minor)
	root["title"] = "Unified Test Format " + versionString(minor)
	root["definitions"] = d.definitions
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(root)
	return out.Bytes(), err
}

// dialect returns the JSON Schema dialect of a minor version. The keyword "deprecated", used since 1.24,
// requires a newer one.
func dialect(minor int) string {
	if minor < 24 {
		return "http://json-schema.org/draft-07/schema#"
	}
	return "https://json-schema.org/draft/2019-09/schema#"
}

func (anything) schema(*derivation) any  { return members{} }
func (forbidden) schema(*derivation) any { return false }
func (s scalar) schema(*derivation) any  { return members{"type": source.Kind(s).String()} }
func (always) schema(*derivation) any    { return members{"type": "boolean", "const": true} }
func (version) schema(*derivation) any {
	return members{"type": "string", "pattern": isVersion.String()}
}

func (r reference) schema(d *derivation) any {
	name := string(r)
	if _, known := d.definitions[name]; !known {
		d.definitions[name] = nil // a definition may contain itself
		d.definitions[name] = format[name].schema(d)
	}
	return members{"$ref": "#/definitions/" + name}
}

func (e enumeration) schema(d *derivation) any {
	return members{"type": "string", "enum": e.upTo(d.minor)}
}

func (l list) schema(d *derivation) any {
	m := members{"type": "array", "items": l.of.schema(d)}
	if l.least > 0 {
		m["minItems"] = l.least
	}
	return m
}

func (e either) schema(d *derivation) any {
	var shapes []any
	for _, a := range e {
		if a.from <= d.minor {
			shapes = append(shapes, a.shape.schema(d))
		}
	}
	if len(shapes) == 1 {
		return shapes[0]
	}
	return members{"oneOf": shapes}
}

func (o object) schema(d *derivation) any {
	if o.deep {
		return members{"type": "object"}
	}
	properties, patterns, required := o.shapes(d)
	m := members{"type": "object"}
	if o.depending != nil && !o.depending.deep {
		o.depend(m, properties, d)
	}
	for keyword, shapes := range map[string]members{"properties": properties, "patternProperties": patterns} {
		if len(shapes) > 0 {
			m[keyword] = shapes
		}
	}
	if len(required) > 0 {
		m["required"] = required
	}
	switch o.others {
	case nil:
		m["additionalProperties"] = false
	case anything{}: // the default of the keyword
	default:
		m["additionalProperties"] = o.others.schema(d)
	}
	for keyword, count := range map[string]int{"minProperties": o.least, "maxProperties": o.most} {
		if count > 0 {
			m[keyword] = count
		}
	}
	var exclusions []any
	for _, pair := range o.apart {
		if o.has(pair[0], d.minor) && o.has(pair[1], d.minor) {
			exclusions = append(exclusions, members{"not": members{"required": pair}})
		}
	}
	if exclusions != nil {
		m["allOf"] = exclusions
	}
	return m
}

// shapes returns the shapes of the keys by name and by pattern, and the required keys.
func (o object) shapes(d *derivation) (properties, patterns members, required []string) {
	properties, patterns = members{}, members{}
	for _, f := range o.fields {
		if f.from > d.minor {
			continue
		}
		s := f.shape.schema(d)
		if f.deprecated > 0 && f.deprecated <= d.minor {
			s.(members)["deprecated"] = true
		}
		if f.labelled > 0 && f.labelled <= d.minor {
			patterns["^"+regexp.QuoteMeta(f.name)+"("+label+")?$"] = s
		} else {
			properties[f.name] = s
		}
		if f.mandatory {
			required = append(required, f.name)
		}
	}
	return properties, patterns, required
}

// depend adds the shapes that the sibling's value selects, or the shape for an absent sibling if the
// version has no such key.
func (o object) depend(m, properties members, d *derivation) {
	dep := o.depending
	fallback := dep.shapes[dep.absent].schema(d)
	if !o.has(dep.sibling, d.minor) {
		properties[dep.key] = fallback
		return
	}
	branches := []any{members{
		"not":        members{"required": []string{dep.sibling}},
		"properties": members{dep.key: fallback},
	}}
	sibling, _, _ := o.find(dep.sibling)
	for _, value := range sibling.shape.(enumeration).upTo(d.minor) {
		branches = append(branches, members{
			"required":   []string{dep.sibling},
			"properties": members{dep.sibling: members{"const": value}, dep.key: dep.shapes[value].schema(d)},
		})
	}
	m["oneOf"] = branches
}

func (o object) has(name string, minor int) bool {
	_, from, ok := o.find(name)
	return ok && from <= minor
}
