package schema

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/format/source"
)

// verdictOf validates a file with gojsonschema by the JSON schema of a minor version, as editors do by what `utr
// schema` prints.
func verdictOf(minor int, root *source.Value) (*gojsonschema.Result, error) {
	schema, err := compiled[minor]()
	if err != nil {
		return nil, err
	}
	return schema.Validate(gojsonschema.NewRawLoader(plain(root)))
}

// compiled has the schema of each minor version, compiled on first use.
var compiled = func() (all [newest + 1]func() (*gojsonschema.Schema, error)) {
	for minor := range all {
		all[minor] = sync.OnceValues(func() (*gojsonschema.Schema, error) {
			text, err := derive(minor)
			if err != nil {
				return nil, err
			}
			return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text))
		})
	}
	return all
}()

// plain converts a value to the types of encoding/json, with json.Number for numbers, for gojsonschema.
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
			// JSON does not have these. To a schema they are numbers that are not integers.
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

// located returns the errors of gojsonschema as problems at the places that they are about. Errors that only say that
// another error makes one of several schemas fail are left out if there are others.
func located(errors []gojsonschema.ResultError, root *source.Value) (problems []Problem) {
	var combined []Problem
	for _, e := range errors {
		keys := strings.Split(e.Context().String("\x00"), "\x00")[1:]
		message := "is not valid by the JSON schema: " + e.Description()
		switch e.Type() {
		case "additional_property_not_allowed":
			keys, message = append(keys, e.Details()["property"].(string)), "unknown key"
		case "number_one_of", "number_all_of", "number_not":
			combined = append(combined, problemAt(root, keys, "has keys or values that are mutually exclusive"))
			continue
		}
		problems = append(problems, problemAt(root, keys, message))
	}
	if problems == nil {
		problems = combined
	}
	slices.SortFunc(problems, func(a, b Problem) int { // gojsonschema visits keys in random order
		return cmp.Or(a.Position.Compare(b.Position), strings.Compare(a.Message, b.Message))
	})
	return problems
}

// problemAt returns a problem of the value that keys and indexes lead to.
func problemAt(root *source.Value, keys []string, message string) Problem {
	at, v, to := root.Position, root, path(nil)
	for _, key := range keys {
		if i, err := strconv.Atoi(key); err == nil && v.Kind == source.Array {
			v, to = v.Items[i], append(to, step{index: i})
		} else if f := v.Field(key); f != nil {
			v, to = f.Value, append(to, step{isKey: true, key: key})
		}
		at = v.Position
	}
	return Problem{Position: at, Path: to.String(), Message: message}
}
