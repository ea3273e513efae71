package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// jsonReader builds nodes from the tokens of encoding/json, which says
// where each ends; the start follows from what may stand between two tokens.
type jsonReader struct {
	limits limits
	file   string
	data   []byte
	tokens *json.Decoder
	cursor cursor
	nodes  int
}

// jsonNodes gives the root node of a JSON document, as YAML, of which JSON is a
// part.
func jsonNodes(l limits, file string, data []byte) (*yaml.Node, *Error) {
	r := &jsonReader{limits: l, file: file, data: data, tokens: json.NewDecoder(bytes.NewReader(data)), cursor: cursor{data: data}}
	r.tokens.UseNumber()
	at, token, err := r.next()
	if err != nil {
		return nil, err
	}
	root, err := r.node(at, token, 0)
	if err != nil {
		return nil, err
	}
	if at := r.after(); len(bytes.Trim(data[r.tokens.InputOffset():], " \t\r\n")) > 0 {
		return nil, errorAt(at, "there is more after the end of the JSON document")
	}
	return root, nil
}

// after is the position of the next token, or the end.
func (r *jsonReader) after() Position {
	at := int(r.tokens.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	return r.cursor.position(r.file, at)
}

func (r *jsonReader) next() (Position, json.Token, *Error) {
	at := r.after()
	token, err := r.tokens.Token()
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return at, token, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at, nil, errorAt(placeOf(r.file, r.data, len(r.data)), "the JSON document is not complete")
	case errors.As(err, &syntax):
		// The decoder's offsets mean different things for different errors.
		// Those of Unmarshal count the bytes read, the offending one included.
		if errors.As(json.Unmarshal(r.data, new(json.RawMessage)), &syntax) {
			at = placeOf(r.file, r.data, max(0, int(syntax.Offset)-1))
		}
		return at, nil, errorAt(at, "malformed JSON: %s", syntax)
	default:
		return at, nil, errorAt(at, "malformed JSON: %s", err)
	}
}

// node gives the node that a token begins.
func (r *jsonReader) node(at Position, token json.Token, depth int) (*yaml.Node, *Error) {
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
		for {
			at, token, err := r.next()
			if err != nil || token == json.Delim(']') || token == json.Delim('}') {
				return n, err
			}
			child, err := r.node(at, token, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
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
