package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// jsonReader builds nodes from the tokens of encoding/json, which reports where each ends. A token starts after the
// blanks and separators that follow the previous one.
type jsonReader struct {
	limits limits
	file   string
	data   []byte // valid JSON
	tokens *json.Decoder
	cursor cursor
	nodes  int
}

// jsonNodes returns the root of a JSON document as a YAML node.
func jsonNodes(l limits, file string, data []byte) (*yaml.Node, error) {
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(data, new(json.RawMessage)), &syntax) {
		if syntax.Error() == "unexpected end of JSON input" {
			return nil, errorAt(positionAt(file, data, len(data)), "the JSON document is not complete")
		}
		// The offset includes the invalid byte.
		return nil, errorAt(positionAt(file, data, max(0, int(syntax.Offset)-1)), "malformed JSON: %s", syntax)
	}
	r := &jsonReader{limits: l, file: file, data: data, tokens: json.NewDecoder(bytes.NewReader(data)), cursor: cursor{data: data}}
	r.tokens.UseNumber()
	return r.node(0)
}

func (r *jsonReader) next() (Position, json.Token) {
	at := int(r.tokens.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	token, _ := r.tokens.Token()
	return r.cursor.position(r.file, at), token
}

func (r *jsonReader) node(depth int) (*yaml.Node, error) {
	at, token := r.next()
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: at.Line, Column: at.Column}
	if r.nodes++; r.nodes > r.limits.nodes {
		return nil, errorAt(at, "the file has more than %d values", r.limits.nodes)
	}
	switch t := token.(type) {
	case nil:
		n.Value = "null"
	case bool, json.Number:
		n.Value = fmt.Sprint(t)
	case string:
		n.Value, n.Style = t, yaml.DoubleQuotedStyle
	case json.Delim:
		if n.Kind = yaml.SequenceNode; t == '{' {
			n.Kind = yaml.MappingNode
		}
		if depth >= r.limits.depth {
			return nil, errorAt(at, "nested more than %d levels deep", r.limits.depth)
		}
		for r.tokens.More() {
			child, err := r.node(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		r.next() // the closing delimiter
	}
	return n, nil
}
