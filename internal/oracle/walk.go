package oracle

import (
	"slices"
	"strings"
)

// Object and List give what a schema has there, or nil.
func Object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func List(v any) []any            { l, _ := v.([]any); return l }

// Resolve follows a $ref in a schema.
func Resolve(root, s map[string]any) map[string]any {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			s = Object(s[step])
		}
	}
}

// Walk visits what a schema says of each path, in every alternative: ".key" for
// each name that a pattern stands for, ".*" for any other, "[]" for elements. A
// recursion is followed once.
func Walk(root map[string]any, visit func(path string, s map[string]any)) {
	var walk func(s map[string]any, path string, refs []string)
	walk = func(s map[string]any, path string, refs []string) {
		if ref, ok := s["$ref"].(string); ok {
			if slices.Contains(refs, ref) {
				return
			}
			refs, s = append(slices.Clone(refs), ref), Resolve(root, s)
		}
		visit(path, s)
		for _, keyword := range []string{"properties", "patternProperties"} {
			for pattern, p := range Object(s[keyword]) {
				for _, name := range namesFor(pattern) {
					walk(Object(p), path+"."+name, refs)
				}
			}
		}
		for keyword, suffix := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
			if below := Object(s[keyword]); below != nil {
				walk(below, path+suffix, refs)
			}
		}
		for _, branch := range slices.Concat(List(s["oneOf"]), List(s["anyOf"])) {
			walk(Object(branch), path, refs)
		}
	}
	walk(root, "", nil)
}
