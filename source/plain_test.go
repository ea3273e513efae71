package source

import (
	"encoding/json"
	"strconv"
)

// Plain gives a value as package encoding/json would read it with UseNumber:
// map[string]any, []any, string, json.Number, bool and nil. Extended JSON is
// left as written. The result is the caller's own.
func (v *Value) Plain() any {
	if v == nil {
		return nil
	}
	switch v.Kind {
	case Bool:
		return v.Bool
	case Int:
		return json.Number(strconv.FormatInt(v.Int, 10))
	case Float:
		return json.Number(v.floatText())
	case String:
		return v.String
	case Array:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = item.Plain()
		}
		return items
	case Document:
		fields := make(map[string]any, len(v.Fields))
		for _, f := range v.Fields {
			fields[f.Key] = f.Value.Plain()
		}
		return fields
	}
	return nil
}

// floatText keeps a point or an exponent in the number, so that reading it
// again gives a Float.
func (v *Value) floatText() string {
	s := strconv.FormatFloat(v.Float, 'g', -1, 64)
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		s += ".0"
	}
	return s
}
