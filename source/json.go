package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// jsonReader builds nodes from the tokens of encoding/json, which says
// where each ends; the start follows from what may stand between two tokens.
type jsonReader struct {
	limits limits
	file   string
	data   []byte // valid JSON
	tokens *json.Decoder
	cursor cursor
	nodes  int
}

// jsonNodes gives the root node of a JSON document, as YAML, of which JSON is a
// part.
func jsonNodes(l limits, file string, data []byte) (*yaml.Node, *Error) {
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(data, new(json.RawMessage)), &syntax) {
		if syntax.Error() == "unexpected end of JSON input" {
			return nil, errorAt(placeOf(file, data, len(data)), "the JSON document is not complete")
		}
		// The offset counts the bytes read, the offending one included.
		return nil, errorAt(placeOf(file, data, max(0, int(syntax.Offset)-1)), "malformed JSON: %s", syntax)
	}
	r := &jsonReader{limits: l, file: file, data: data, tokens: json.NewDecoder(bytes.NewReader(data)), cursor: cursor{data: data}}
	r.tokens.UseNumber()
	return r.node(0)
}

// next gives the next token of valid JSON and its position.
func (r *jsonReader) next() (Position, json.Token) {
	at := int(r.tokens.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	token, _ := r.tokens.Token()
	return r.cursor.position(r.file, at), token
}

// node gives the node that the next token begins.
func (r *jsonReader) node(depth int) (*yaml.Node, *Error) {
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
		r.next() // the end
	}
	return n, nil
}

// keys finds keys that are given twice.
type keys map[string]Position

func (k keys) add(key string, at Position) error {
	if first, again := k[key]; again {
		return errorAt(at, "duplicate key %q; it is first given in line %d", key, first.Line)
	}
	k[key] = at
	return nil
}

// setNumber reads a number as written in JSON: an integer if it has neither
// fraction nor exponent and fits 64 bits, floating point otherwise (Extended
// JSON v2, "Parsers": integers that do not fit become doubles). It reports
// false for what no double can hold.
func (v *Value) setNumber(s string) bool {
	if !strings.ContainsAny(s, ".eE") && s != "-0" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			v.Kind, v.Int = Int, n
			return true
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	v.Kind, v.Float = Float, f
	return true
}
