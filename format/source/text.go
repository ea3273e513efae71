package source

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// JSON renders a value on one line, with keys in order and Extended JSON uninterpreted. Parsing it returns an equal
// value: a Float keeps a point or an exponent. A nil Value is null.
func (v *Value) JSON() string {
	return string(jsonForm{order: func(inOrder []Field) []Field { return inOrder }, number: exactNumber}.append(nil, v, 0))
}

// jsonForm is a way to write JSON.
type jsonForm struct {
	order    func([]Field) []Field
	number   func(*Value) string
	indented bool // by two spaces, with a key or item per line
}

func exactNumber(v *Value) string {
	if v.Kind == Int {
		return strconv.FormatInt(v.Int, 10)
	}
	s := strconv.FormatFloat(v.Float, 'g', -1, 64)
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		s += ".0"
	}
	return s
}

func (form jsonForm) append(b []byte, v *Value, depth int) []byte {
	if v == nil || v.Kind == Null {
		return append(b, "null"...)
	}
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(b, v.Bool)
	case Int, Float:
		return append(b, form.number(v)...)
	case String:
		return appendQuoted(b, v.String)
	case Array:
		b = append(b, '[')
		for i, item := range v.Items {
			b = form.append(form.separate(b, i, depth+1), item, depth+1)
		}
		return append(form.close(b, len(v.Items), depth), ']')
	default:
		b = append(b, '{')
		for i, f := range form.order(v.Fields) {
			b = append(appendQuoted(form.separate(b, i, depth+1), f.Key), ':')
			if form.indented {
				b = append(b, ' ')
			}
			b = form.append(b, f.Value, depth+1)
		}
		return append(form.close(b, len(v.Fields), depth), '}')
	}
}

// separate writes what precedes the element at an index.
func (form jsonForm) separate(b []byte, index, depth int) []byte {
	if index > 0 {
		b = append(b, ',')
	}
	return form.line(b, depth)
}

// close writes what follows the last of n elements.
func (form jsonForm) close(b []byte, n, depth int) []byte {
	if n == 0 {
		return b
	}
	return form.line(b, depth)
}

func (form jsonForm) line(b []byte, depth int) []byte {
	if form.indented {
		b = append(b, '\n')
		for range depth {
			b = append(b, "  "...)
		}
	}
	return b
}

// Quote renders a string as JSON without escaping <, > and &.
func Quote(s string) string { return string(appendQuoted(nil, s)) }

func appendQuoted(b []byte, s string) []byte {
	plain := true // as almost all strings are
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string never fails
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}
