package main

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// value is a YAML value; nil means no value. It never changes, so that values can share parts.
type value = *yaml.Node

// doc returns a document of alternating names and values. It is printed on one line.
func doc(fields ...any) value {
	d := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, field := range fields {
		d.Content = append(d.Content, node(field))
	}
	return d
}

// list returns a list of values. It is printed on one line.
func list[T any](items ...T) value {
	l := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, item := range items {
		l.Content = append(l.Content, node(item))
	}
	return l
}

func node(v any) value {
	switch v := v.(type) {
	case value:
		return v
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
}

// block returns a document or list that is printed with a line for each field or item.
func block(v value) value {
	lines := *v
	lines.Style = 0
	return &lines
}

// quoted returns a string in quotes.
func quoted(s string) value {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}

// long returns a 64-bit integer in Extended JSON.
func long(n int) value { return doc("$numberLong", quoted(fmt.Sprint(n))) }

// flow parses a constant.
func flow(text string) value {
	var v yaml.Node
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v.Content[0]
}

// merge returns a document with the fields of several documents. They may be nil.
func merge(documents ...value) value {
	all := doc()
	for _, d := range documents {
		if d != nil {
			all.Content = append(all.Content, d.Content...)
		}
	}
	return all
}

// visit calls f for each field with a scalar value in a value.
func visit(v value, f func(name, value string)) {
	for i, x := range v.Content {
		if v.Kind == yaml.MappingNode && i%2 == 1 && x.Kind == yaml.ScalarNode {
			f(v.Content[i-1].Value, x.Value)
		}
		visit(x, f)
	}
}

// printed returns the text of a document.
func printed(v value) ([]byte, error) {
	return yaml.Dump(v, yaml.WithIndent(2), yaml.WithLineWidth(-1))
}
