package schema

import (
	"slices"
	"strings"
)

// objectIn and listIn return v, or nil if it has another type.
func objectIn(v any) map[string]any { m, _ := v.(map[string]any); return m }

func listIn(v any) []any { l, _ := v.([]any); return l }

// followRef follows a $ref in a schema.
func followRef(root, s map[string]any) map[string]any {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			s = objectIn(s[step])
		}
	}
}

// walkSchema visits the schemas of each path, in every alternative: ".key" for each name of a pattern,
// ".*" for other keys, "[]" for elements. It follows a recursion once.
func walkSchema(root map[string]any, visit func(path string, s map[string]any)) {
	var walk func(s map[string]any, path string, refs []string)
	walk = func(s map[string]any, path string, refs []string) {
		if ref, ok := s["$ref"].(string); ok {
			if slices.Contains(refs, ref) {
				return
			}
			refs, s = append(slices.Clone(refs), ref), followRef(root, s)
		}
		visit(path, s)
		for _, keyword := range []string{"properties", "patternProperties"} {
			for pattern, p := range objectIn(s[keyword]) {
				for _, name := range namesFor(pattern) {
					walk(objectIn(p), path+"."+name, refs)
				}
			}
		}
		for keyword, suffix := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
			if below := objectIn(s[keyword]); below != nil {
				walk(below, path+suffix, refs)
			}
		}
		for _, branch := range slices.Concat(listIn(s["oneOf"]), listIn(s["anyOf"])) {
			walk(objectIn(branch), path, refs)
		}
	}
	walk(root, "", nil)
}
