package compare

import (
	"bytes"
	"cmp"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/format/source"
)

// doc returns a document of alternating keys and values, without nil values.
func doc(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != nil {
			out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
		}
	}
	return out
}

// when returns v if the condition holds, or nil.
func when(condition bool, v any) any {
	if condition {
		return v
	}
	return nil
}

// parsed converts a document to a value of a suite, in relaxed Extended JSON.
func parsed(d bson.D) (*source.Value, error) {
	text, err := bson.MarshalExtJSON(d, false, false)
	if err != nil {
		return nil, err
	}
	return source.ParseJSON("generated", text)
}

// lineWidth is the longest value on one line of a file.
const lineWidth = 130

// printed returns the text of a YAML node.
func printed(n *yaml.Node) string {
	var out bytes.Buffer
	d, err := yaml.NewDumper(&out, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err := cmp.Or(err, d.Dump(n), d.Close()); err != nil {
		panic(err) // nodes come from JSON
	}
	return out.String()
}

// style puts each value on one line if that is short, without unnecessary quotes.
func style(n *yaml.Node) {
	n.Style = 0
	for _, part := range n.Content {
		style(part)
	}
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		if n.Style = yaml.FlowStyle; len(printed(n)) > lineWidth {
			n.Style = 0
		}
	}
}
