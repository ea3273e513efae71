package compare

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/unified-test-runner/utr/source"
	"go.yaml.in/yaml/v4"
)

// doc returns a document of alternating keys and values, without nil values.
func doc(pairs ...any) *source.Value {
	out := &source.Value{Kind: source.Document}
	for i := 0; i < len(pairs); i += 2 {
		if v := value(pairs[i+1]); v != nil {
			out.Fields = append(out.Fields, source.Field{Key: pairs[i].(string), Value: v})
		}
	}
	return out
}

func list(items ...*source.Value) *source.Value {
	return &source.Value{Kind: source.Array, Items: items}
}

// value converts a Go value to a value of a suite.
func value(v any) *source.Value {
	switch v := v.(type) {
	case nil:
		return nil
	case *source.Value:
		return v
	case bool:
		return &source.Value{Kind: source.Bool, Bool: v}
	case int:
		return &source.Value{Kind: source.Int, Int: int64(v)}
	case string:
		return &source.Value{Kind: source.String, String: v}
	case []string:
		out := list()
		for _, s := range v {
			out.Items = append(out.Items, value(s))
		}
		return out
	}
	panic(fmt.Sprintf("%T is not a value of a suite", v))
}

// when returns v if the condition holds, or nil.
func when(condition bool, v any) any {
	if condition {
		return v
	}
	return nil
}

// join concatenates documents.
func join(docs ...*source.Value) *source.Value {
	out := doc()
	for _, d := range docs {
		out.Fields = append(out.Fields, d.Fields...)
	}
	return out
}

// lineWidth is the longest value on one line of a file.
const lineWidth = 130

// printed returns the text of a YAML node.
func printed(n *yaml.Node) string {
	var out bytes.Buffer
	d, err := yaml.NewDumper(&out, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err := cmp.Or(err, d.Dump(n), d.Close()); err != nil {
		panic(err) // nodes come from node
	}
	return out.String()
}

// node converts a value to YAML, on one line if that is short.
func node(v *source.Value) *yaml.Node {
	n := &yaml.Node{}
	switch v.Kind {
	case source.Document:
		n.Kind = yaml.MappingNode
		for _, f := range v.Fields {
			n.Content = append(n.Content, node(value(f.Key)), node(f.Value))
		}
	case source.Array:
		n.Kind = yaml.SequenceNode
		for _, item := range v.Items {
			n.Content = append(n.Content, node(item))
		}
	default:
		scalar := map[source.Kind]any{source.Bool: v.Bool, source.Int: v.Int, source.Float: v.Float, source.String: v.String}[v.Kind]
		if err := n.Encode(scalar); err != nil {
			panic(err) // scalars cannot fail to encode
		}
		return n
	}
	if n.Style = yaml.FlowStyle; len(printed(n)) > lineWidth {
		n.Style = 0
	}
	return n
}
