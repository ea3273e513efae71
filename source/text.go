package source

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// JSON renders a value on one line, with keys in order and Extended JSON
// uninterpreted. Parsing it returns an equal value: a Float keeps a point or an
// exponent. A nil Value is null.
func (v *Value) JSON() string {
	if v == nil {
		return "null"
	}
	var parts []string
	switch v.Kind {
	case Bool:
		return strconv.FormatBool(v.Bool)
	case Int:
		return strconv.FormatInt(v.Int, 10)
	case Float:
		s := strconv.FormatFloat(v.Float, 'g', -1, 64)
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			s += ".0"
		}
		return s
	case String:
		return Quote(v.String)
	case Array:
		for _, item := range v.Items {
			parts = append(parts, item.JSON())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case Document:
		for _, f := range v.Fields {
			parts = append(parts, Quote(f.Key)+":"+f.Value.JSON())
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return "null"
	}
}

// Quote renders a string as JSON without escaping <, > and &.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
