package process

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/jsonerror"
)

// decode reads JSON strictly: unknown members are errors, in the words of the protocol.
func decode(data []byte, into any) error { return words().Decode(data, into) }

func words() jsonerror.Decoder { return jsonerror.Decoder{Special: wrongSpecial} }

// wrongSpecial explains what is wrong with a text for a type of this package or of BSON.
func wrongSpecial(t reflect.Type, data []byte, name string) (wrong string, known bool) {
	switch t {
	case reflect.TypeFor[value]():
		return wrongValue(data, name), true
	case reflect.TypeFor[document]():
		if isEmptyArray(data) {
			return "", true
		}
		if is := jsonerror.Kind(data); is != jsonerror.Object {
			return fmt.Sprintf("%s is %s, not a document", name, is), true
		}
		return wrongValue(data, name), true
	case reflect.TypeFor[bson.ObjectID]():
		if json.Unmarshal(data, new(bson.ObjectID)) != nil {
			return fmt.Sprintf(`%s is %s, not an ObjectId such as "0123456789abcdef01234567"`, name, jsonerror.Excerpt(data)),
				true
		}
		return "", true
	case reflect.TypeFor[failure](): // its UnmarshalJSON only calls decode
		type plain failure
		return words().Wrong(reflect.TypeFor[plain](), data, name), true
	}
	return "", false
}

// examples are values of Extended JSON, by the key that they begin with.
var examples = map[string]string{
	"$numberInt": `{"$numberInt": "1"}`, "$numberLong": `{"$numberLong": "1"}`,
	"$numberDouble":  `{"$numberDouble": "1.5"}`,
	"$numberDecimal": `{"$numberDecimal": "1.5"}`, "$oid": `{"$oid": "0123456789abcdef01234567"}`,
	"$date": `{"$date": {"$numberLong": "0"}}`, "$timestamp": `{"$timestamp": {"t": 1, "i": 1}}`,
	"$binary":            `{"$binary": {"base64": "AAA=", "subType": "00"}}`,
	"$uuid":              `{"$uuid": "00000000-0000-4000-8000-000000000000"}`,
	"$regularExpression": `{"$regularExpression": {"pattern": "a", "options": ""}}`,
}

// wrongValue names the innermost place of a text that is not Extended JSON, or "".
func wrongValue(data []byte, at string) string {
	if json.Unmarshal(data, new(value)) == nil {
		return ""
	}
	children, special := jsonerror.Items(data), ""
	for _, m := range jsonerror.Members(data) {
		if strings.HasPrefix(m.Name, "$") {
			special = m.Name
		}
		children = append(children, jsonerror.Member{Name: "." + m.Name, Value: m.Value})
	}
	if special == "" {
		if text := jsonerror.First(children, func(m jsonerror.Member) string {
			return wrongValue(m.Value,
				at+m.Name)
		}); text != "" {
			return text
		}
	}
	text := fmt.Sprintf("%s is %s, not Extended JSON", at, jsonerror.Excerpt(data))
	if example := examples[special]; example != "" {
		text += " such as " + example
	}
	return text
}

// lacks names the first member that a result must have and lacks, or "".
func lacks(result reflect.Value, data []byte) string {
	var missing []string
	var look func(reflect.Value)
	look = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				look(v.Field(i))
			case name != "" && name != "-" && options == "" && v.Field(i).IsZero():
				missing = append(missing, name)
			}
		}
	}
	if look(result); len(missing) == 0 {
		return ""
	}
	for _, m := range jsonerror.Members(data) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return strings.EqualFold(name, m.Name) })
	}
	if len(missing) == 0 {
		return ""
	}
	return "it lacks " + strings.Join(missing, ", ")
}

// isLog reports whether a line looks like the output of a logger or of a print.
func isLog(line []byte) bool {
	if jsonerror.Kind(line) != jsonerror.Object {
		return true
	}
	all := jsonerror.Members(line)
	return len(all) > 0 && !slices.ContainsFunc(all, func(m jsonerror.Member) bool {
		return slices.Contains([]string{"jsonrpc", "id", "method", "params", "result", "error"}, m.Name)
	})
}
