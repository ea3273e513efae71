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
	return v.render(func(inOrder []Field) []Field { return inOrder }, exactNumber)
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

// render renders a value as JSON on one line.
func (v *Value) render(order func([]Field) []Field, number func(*Value) string) string {
	if v == nil || v.Kind == Null {
		return "null"
	}
	var parts []string
	switch v.Kind {
	case Bool:
		return strconv.FormatBool(v.Bool)
	case Int, Float:
		return number(v)
	case String:
		return Quote(v.String)
	case Array:
		for _, item := range v.Items {
			parts = append(parts, item.render(order, number))
		}
		return "[" + strings.Join(parts, ",") + "]"
	default:
		for _, f := range order(v.Fields) {
			parts = append(parts, Quote(f.Key)+":"+f.Value.render(order, number))
		}
		return "{" + strings.Join(parts, ",") + "}"
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
