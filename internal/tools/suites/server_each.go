package main

import (
	"maps"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// fillEach returns a test for each combination of the values of its field each. The last of them varies fastest. In the
// test, a value replaces <name>, and a field of a value that is a document replaces <name.field>.
func fillEach(row value) ([]value, error) {
	each, rest := doc(), *row
	rest.Content = nil
	for i := 0; i+1 < len(row.Content); i += 2 {
		if row.Content[i].Value == "each" {
			each = row.Content[i+1]
			continue
		}
		rest.Content = append(rest.Content, row.Content[i], row.Content[i+1])
	}
	combinations := []map[string]value{{}}
	for i := 0; i+1 < len(each.Content); i += 2 {
		var more []map[string]value
		for _, c := range combinations {
			for _, v := range resolved(each.Content[i+1]).Content {
				one := maps.Clone(c)
				one[each.Content[i].Value] = resolved(v)
				more = append(more, one)
			}
		}
		combinations = more
	}
	var out []value
	for _, c := range combinations {
		filled, err := fill(&rest, c)
		if err != nil {
			return nil, err
		}
		out = append(out, filled)
	}
	return out, nil
}

func resolved(v value) value {
	if v.Kind == yaml.AliasNode {
		return v.Alias
	}
	return v
}

// variable is a place for a value.
var variable = regexp.MustCompile(`<[a-z]+(\.[a-z]+)?>`)

// fill returns a copy of a value with the values of variables.
func fill(v value, variables map[string]value) (value, error) {
	filled := *resolved(v)
	filled.Anchor, filled.Content = "", nil
	if variable.FindString(filled.Value) == filled.Value && filled.Value != "" {
		return lookup(v, filled.Value, variables)
	}
	var err error
	filled.Value = variable.ReplaceAllStringFunc(filled.Value, func(name string) string {
		one, failed := lookup(v, name, variables)
		if failed != nil {
			err = failed
			return ""
		}
		return one.Value
	})
	for _, part := range resolved(v).Content {
		one, failed := fill(part, variables)
		if failed != nil {
			return nil, failed
		}
		filled.Content = append(filled.Content, one)
	}
	return &filled, err
}

// lookup returns the value of a variable.
func lookup(at value, name string, variables map[string]value) (value, error) {
	name, field, _ := strings.Cut(strings.Trim(name, "<>"), ".")
	v, found := variables[name]
	if found && field != "" {
		for i := 0; i+1 < len(v.Content); i += 2 {
			if v.Content[i].Value == field {
				return fill(v.Content[i+1], nil)
			}
		}
	}
	if !found || field != "" {
		return nil, mistake(at, "unknown variable <%s>", strings.Trim(name+"."+field, "."))
	}
	return fill(v, nil)
}
