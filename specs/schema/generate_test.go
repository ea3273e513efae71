package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A generator makes valid documents from an official schema, so that every
// key that it has is there in some document, whether or not the project's
// own source knows it.
type generator struct {
	root map[string]any
	rng  *rand.Rand
	// all puts in every key that may be there, instead of some.
	all bool
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }
func asList(v any) []any         { l, _ := v.([]any); return l }

// resolve follows a $ref.
func resolve(root, s map[string]any) map[string]any {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			s = asMap(s[step])
		}
	}
}

// suite makes a document that declares a version.
func (g *generator) suite(version string) any {
	doc := asMap(g.value(g.root, 0))
	doc["schemaVersion"] = version
	return doc
}

func (g *generator) value(s map[string]any, depth int) any {
	s = resolve(g.root, s)
	if c, ok := s["const"]; ok {
		return c
	}
	if values := asList(s["enum"]); len(values) > 0 {
		return values[g.rng.IntN(len(values))]
	}
	if pattern, ok := s["pattern"].(string); ok && strings.Contains(pattern, "0-9") {
		return "4.4"
	}
	s = g.choose(s)
	switch s["type"] {
	case "string":
		return []string{"a", "client0", "", "$$placeholder"}[g.rng.IntN(4)]
	case "boolean":
		return g.rng.IntN(2) == 0
	case "integer":
		return json.Number([]string{"0", "-1", "7.0", "1e3"}[g.rng.IntN(4)])
	case "array":
		return g.array(asMap(s["items"]), depth)
	case "object":
		return g.object(s, depth)
	default:
		return []any{nil, true, json.Number("1.5"), "x", []any{}, map[string]any{}}[g.rng.IntN(6)]
	}
}

func (g *generator) array(item map[string]any, depth int) any {
	item = resolve(g.root, item)
	items := []any{}
	if g.all && item["maxProperties"] != nil { // one of each kind
		properties := asMap(item["properties"])
		for _, name := range sortedKeys(properties) {
			items = append(items, map[string]any{name: g.value(asMap(properties[name]), depth+1)})
		}
		return items
	}
	n := 1
	if !g.all {
		n += g.rng.IntN(2)
	}
	for range n {
		items = append(items, g.value(item, depth+1))
	}
	return items
}

// choose lays one of the alternatives over a schema.
func (g *generator) choose(s map[string]any) map[string]any {
	for _, keyword := range []string{"oneOf", "anyOf"} {
		all := asList(s[keyword])
		if len(all) == 0 {
			continue
		}
		branch := asMap(all[g.rng.IntN(len(all))])
		merged := map[string]any{}
		for k, v := range s {
			if k != keyword {
				merged[k] = v
			}
		}
		for k, v := range branch {
			if own, both := asMap(s[k]), asMap(v); k == "properties" && own != nil && branch["additionalProperties"] != false {
				union := map[string]any{}
				for name, p := range own {
					union[name] = p
				}
				for name, p := range both {
					union[name] = p
				}
				v = union
			}
			if k == "required" {
				v = append(slices.Clone(asList(s[k])), asList(v)...)
			}
			merged[k] = v
		}
		return merged
	}
	return s
}

func (g *generator) object(s map[string]any, depth int) any {
	properties := map[string]any{}
	for name, p := range asMap(s["properties"]) {
		if p != false {
			properties[name] = p
		}
	}
	for pattern, p := range asMap(s["patternProperties"]) {
		for _, name := range namesFor(pattern) {
			properties[name] = p
		}
	}
	if s["additionalProperties"] != false && len(properties) == 0 {
		properties["x"] = map[string]any{}
		if p := asMap(s["additionalProperties"]); p != nil {
			properties["x"] = p
		}
	}
	names := sortedKeys(properties)
	doc := map[string]any{}
	if s["maxProperties"] != nil {
		name := names[g.rng.IntN(len(names))]
		doc[name] = g.value(asMap(properties[name]), depth+1)
		return doc
	}
	for _, name := range names {
		if slices.Contains(asList(s["required"]), any(name)) || depth < 12 && (g.all || g.rng.IntN(10) < 6) {
			doc[name] = g.value(asMap(properties[name]), depth+1)
		}
	}
	if s["minProperties"] != nil && len(doc) == 0 {
		name := names[g.rng.IntN(len(names))]
		doc[name] = g.value(asMap(properties[name]), depth+1)
	}
	for _, rule := range asList(s["allOf"]) {
		pair := asList(asMap(asMap(rule)["not"])["required"])
		a, b := pair[0].(string), pair[1].(string)
		if _, ok := doc[a]; ok {
			if g.rng.IntN(2) == 0 {
				a, b = b, a
			}
			delete(doc, a)
			_ = b
		}
	}
	return doc
}

// namesFor gives keys that a pattern of the schemas matches: ^aws(:…)?$.
func namesFor(pattern string) []string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "^"), "(")
	return []string{name, name + ":name1"}
}

// placesOf gives the path of every key that a schema names, with [] for an
// array's elements, and recursion followed once.
func placesOf(root map[string]any) map[string]bool {
	places := map[string]bool{}
	eachPlace(root, func(path string, _ map[string]any) { places[path] = true })
	delete(places, "")
	for place := range places {
		if strings.HasSuffix(place, "[]") || strings.HasSuffix(place, ".*") {
			delete(places, place)
		}
	}
	return places
}

// factsOf gives what a schema says of each path, in whichever alternative.
func factsOf(root map[string]any) map[string]bool {
	facts := map[string]bool{}
	eachPlace(root, func(path string, s map[string]any) {
		for _, keyword := range []string{"type", "const", "pattern", "minItems", "minProperties", "maxProperties"} {
			if value, ok := s[keyword]; ok {
				facts[fmt.Sprintf("%s: %s %v", path, keyword, value)] = true
			}
		}
		if s["deprecated"] == true && !strings.HasSuffix(path, "[]") { // said of the array is said of its elements
			facts[path+": is deprecated"] = true
		}
		for _, value := range asList(s["enum"]) {
			facts[fmt.Sprintf("%s: may be %v", path, value)] = true
		}
		facts[path+": is known"] = true
	})
	return facts
}

// eachPlace calls a function with each path that a schema describes and what
// it says there.
func eachPlace(root map[string]any, visit func(path string, s map[string]any)) {
	var walk func(s map[string]any, path string, refs []string)
	walk = func(s map[string]any, path string, refs []string) {
		if ref, ok := s["$ref"].(string); ok {
			if slices.Contains(refs, ref) {
				return
			}
			refs = append(slices.Clone(refs), ref)
			s = resolve(root, s)
		}
		visit(path, s)
		for name, p := range asMap(s["properties"]) {
			walk(asMap(p), path+"."+name, refs)
		}
		for pattern, p := range asMap(s["patternProperties"]) {
			for _, name := range namesFor(pattern) {
				walk(asMap(p), path+"."+name, refs)
			}
		}
		if items := asMap(s["items"]); items != nil {
			walk(items, path+"[]", refs)
		}
		if others := asMap(s["additionalProperties"]); others != nil {
			walk(others, path+".*", refs)
		}
		for _, keyword := range []string{"oneOf", "anyOf"} {
			for _, branch := range asList(s[keyword]) {
				walk(asMap(branch), path, refs)
			}
		}
	}
	walk(root, "", nil)
}
