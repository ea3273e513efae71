package source

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// JSON renders a value on one line, with keys in order and Extended JSON uninterpreted. Parsing it returns an equal
// value: a Float keeps a point or an exponent. A nil Value is null.
func (v *Value) JSON() string {
	return string(v.appendJSON(nil, func(inOrder []Field) []Field { return inOrder }, exactNumber))
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

func (v *Value) appendJSON(b []byte, order func([]Field) []Field, number func(*Value) string) []byte {
	if v == nil || v.Kind == Null {
		return append(b, "null"...)
	}
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(b, v.Bool)
	case Int, Float:
		return append(b, number(v)...)
	case String:
		return append(b, Quote(v.String)...)
	case Array:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b, order, number)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, f := range order(v.Fields) {
			if i > 0 {
				b = append(b, ',')
			}
			b = f.Value.appendJSON(append(append(b, Quote(f.Key)...), ':'), order, number)
		}
		return append(b, '}')
	}
}

// Quote renders a string as JSON without escaping <, > and &.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string never fails
	return strings.TrimSuffix(b.String(), "\n")
}
