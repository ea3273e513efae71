package schema

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/unified-test-runner/utr/source"
)

// plain gives a value as encoding/json would, with json.Number for numbers:
// the form that gojsonschema reads.
func plain(v *source.Value) any {
	if v == nil {
		return nil
	}
	switch v.Kind {
	case source.Bool:
		return v.Bool
	case source.Int:
		return json.Number(strconv.FormatInt(v.Int, 10))
	case source.Float:
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			// YAML has these and JSON has not. To a schema they are numbers
			// that are not integers, like this one.
			return json.Number("0.5")
		}
		return json.Number(strconv.FormatFloat(v.Float, 'g', -1, 64))
	case source.String:
		return v.String
	case source.Array:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = plain(item)
		}
		return items
	case source.Document:
		fields := make(map[string]any, len(v.Fields))
		for _, f := range v.Fields {
			fields[f.Key] = plain(f.Value)
		}
		return fields
	default:
		return nil
	}
}

// isInteger reports whether a value is what JSON Schema calls an integer: a
// number without a fraction, however it is written.
func isInteger(v *source.Value) bool {
	return v.Kind == source.Int || v.Kind == source.Float && v.Float == math.Trunc(v.Float) && !math.IsInf(v.Float, 0)
}
