package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// jsonReader builds values from the tokens of encoding/json, which says
// where each ends; the start follows from what may stand between two tokens.
type jsonReader struct {
	limits Limits
	file   string
	data   []byte
	tokens *json.Decoder
	cursor cursor
	nodes  int
}

func (l Limits) parseJSON(file string, data []byte) (*Value, error) {
	r := &jsonReader{limits: l, file: file, data: data, tokens: json.NewDecoder(bytes.NewReader(data)), cursor: cursor{data: data}}
	r.tokens.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if at := r.after(); len(bytes.Trim(data[r.tokens.InputOffset():], " \t\r\n")) > 0 {
		return nil, errorAt(at, Malformed, "there is more after the end of the JSON document")
	}
	return v, nil
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
		return at, nil, errorAt(placeOf(r.file, r.data, len(r.data)), Malformed, "the JSON document is not complete")
	case errors.As(err, &syntax):
		// The decoder's offsets mean different things for different errors.
		// Those of Unmarshal count the bytes read, the offending one included.
		if errors.As(json.Unmarshal(r.data, new(json.RawMessage)), &syntax) {
			at = placeOf(r.file, r.data, max(0, int(syntax.Offset)-1))
		}
		return at, nil, errorAt(at, Malformed, "malformed JSON: %s", syntax)
	default:
		return at, nil, errorAt(at, Malformed, "malformed JSON: %s", err)
	}
}

func (r *jsonReader) value(depth int) (*Value, error) {
	at, token, err := r.next()
	if err != nil {
		return nil, err
	}
	return r.valueOf(at, token, depth)
}

func (r *jsonReader) valueOf(at Position, token json.Token, depth int) (*Value, error) {
	if r.nodes++; r.nodes > r.limits.Nodes {
		return nil, errorAt(at, TooMany, "the file has more than %d values", r.limits.Nodes)
	}
	v := &Value{Position: at}
	switch t := token.(type) {
	case nil:
		v.Kind = Null
	case bool:
		v.Kind, v.Bool = Bool, t
	case string:
		v.Kind, v.String = String, t
	case json.Number:
		if !v.setNumber(t.String()) {
			return nil, errorAt(at, Unsupported, "number %s is out of range", t)
		}
	case json.Delim:
		if depth >= r.limits.Depth {
			return nil, errorAt(at, TooDeep, "nested more than %d levels deep", r.limits.Depth)
		}
		if t == '{' {
			return v, r.document(v, depth+1)
		}
		return v, r.array(v, depth+1)
	}
	return v, nil
}

func (r *jsonReader) array(v *Value, depth int) error {
	v.Kind, v.Items = Array, []*Value{}
	for {
		at, token, err := r.next()
		if err != nil {
			return err
		}
		if token == json.Delim(']') {
			return nil
		}
		item, e := r.valueOf(at, token, depth)
		if e != nil {
			return e
		}
		v.Items = append(v.Items, item)
	}
}

func (r *jsonReader) document(v *Value, depth int) error {
	v.Kind, v.Fields = Document, []Field{}
	seen := keys{}
	for {
		at, token, err := r.next()
		if err != nil {
			return err
		}
		if token == json.Delim('}') {
			return nil
		}
		key := token.(string) // the decoder refuses anything else
		if err := seen.add(key, at); err != nil {
			return err
		}
		value, e := r.value(depth)
		if e != nil {
			return e
		}
		v.Fields = append(v.Fields, Field{key, at, value})
	}
}

// keys finds keys that are given twice.
type keys map[string]Position

func (k keys) add(key string, at Position) error {
	if first, again := k[key]; again {
		return errorAt(at, DuplicateKey, "duplicate key %q; it is first given in line %d", key, first.Line)
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
