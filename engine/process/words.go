package process

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/meant"
)

// wrong names the first place of a JSON text that cannot be decoded into a Go type, in the words of the protocol. It
// returns "" if there is none.
func wrong(t reflect.Type, data []byte, at string) string {
	is := kindOf(data)
	name := cmp.Or(at, "it")
	must := func(want string) string {
		if is == want || is == "null" {
			return ""
		}
		return fmt.Sprintf("%s is %s, not %s", name, is, want)
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return ""
	case t == reflect.TypeFor[value]():
		return wrongValue(data, name)
	case t == reflect.TypeFor[document]():
		if isEmptyArray(data) {
			return ""
		}
		if is != anObject {
			return fmt.Sprintf("%s is %s, not a document", name, is)
		}
		return wrongValue(data, name)
	case t == reflect.TypeFor[bson.ObjectID]():
		if json.Unmarshal(data, new(bson.ObjectID)) != nil {
			return fmt.Sprintf(`%s is %s, not an ObjectId such as "0123456789abcdef01234567"`, name, excerpt(data))
		}
		return ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		if is == "null" {
			return ""
		}
		return wrong(t.Elem(), data, at)
	case reflect.Struct:
		if is != anObject {
			return must(anObject)
		}
		return wrongMember(t, data, at)
	case reflect.Map:
		return cmp.Or(must(anObject), firstWrong(membersOf(data), func(m member) string {
			if t.Key().Kind() != reflect.String && strings.Trim(m.name, "0123456789") != "" {
				return fmt.Sprintf("%s has the member %q, which is not an index", name, m.name)
			}
			return wrong(t.Elem(), m.value, at+"."+m.name)
		}))
	case reflect.Slice:
		return cmp.Or(must(aList), firstWrong(itemsOf(data), func(m member) string {
			return wrong(t.Elem(), m.value, at+m.name)
		}))
	case reflect.String:
		return must("a string")
	case reflect.Bool:
		return must("a boolean")
	case reflect.Float64:
		return must("a number")
	default:
		if text := must("a number"); text != "" || json.Unmarshal(data, reflect.New(t).Interface()) == nil {
			return text
		}
		return fmt.Sprintf("%s is %s, not an integer of %d bits", name, excerpt(data), t.Bits())
	}
}

// wrongMember is wrong for a structure.
func wrongMember(t reflect.Type, data []byte, at string) string {
	types := typesOf(t)
	return firstWrong(membersOf(data), func(m member) string {
		for name, of := range types {
			if strings.EqualFold(name, m.name) { // as encoding/json does
				return wrong(of, m.value, strings.TrimPrefix(at+"."+m.name, "."))
			}
		}
		text := fmt.Sprintf("%s has the unknown member %q", cmp.Or(at, "it"), m.name)
		if likely := meant.Word(m.name, slices.Sorted(maps.Keys(types))); likely != "" {
			text += fmt.Sprintf(" (did you mean %s?)", likely)
		}
		return text
	})
}

// examples are values of Extended JSON, by the key that they begin with.
var examples = map[string]string{
	"$numberInt": `{"$numberInt": "1"}`, "$numberLong": `{"$numberLong": "1"}`, "$numberDouble": `{"$numberDouble": "1.5"}`,
	"$numberDecimal": `{"$numberDecimal": "1.5"}`, "$oid": `{"$oid": "0123456789abcdef01234567"}`,
	"$date": `{"$date": {"$numberLong": "0"}}`, "$timestamp": `{"$timestamp": {"t": 1, "i": 1}}`,
	"$binary": `{"$binary": {"base64": "AAA=", "subType": "00"}}`, "$uuid": `{"$uuid": "00000000-0000-4000-8000-000000000000"}`,
	"$regularExpression": `{"$regularExpression": {"pattern": "a", "options": ""}}`,
}

// wrongValue names the innermost place of a text that is not Extended JSON, or "".
func wrongValue(data []byte, at string) string {
	if json.Unmarshal(data, new(value)) == nil {
		return ""
	}
	children, special := itemsOf(data), ""
	for _, m := range membersOf(data) {
		if strings.HasPrefix(m.name, "$") {
			special = m.name
		}
		children = append(children, member{"." + m.name, m.value})
	}
	if special == "" {
		if text := firstWrong(children, func(m member) string { return wrongValue(m.value, at+m.name) }); text != "" {
			return text
		}
	}
	text := fmt.Sprintf("%s is %s, not Extended JSON", at, excerpt(data))
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
	for _, m := range membersOf(data) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return strings.EqualFold(name, m.name) })
	}
	if len(missing) == 0 {
		return ""
	}
	return "it lacks " + strings.Join(missing, ", ")
}

// notJSON says where a text stops being JSON.
func notJSON(data []byte) string {
	syntax := (*json.SyntaxError)(nil)
	if err := json.Unmarshal(data, new(any)); !errors.As(err, &syntax) || syntax.Offset > int64(len(data)) {
		return ""
	}
	if rest := data[max(0, syntax.Offset-1):]; syntax.Offset > 1 && json.Valid(data[:syntax.Offset-1]) {
		return "it continues after its end with " + excerpt(rest)
	} else if len(rest) > 1 {
		return "it is not JSON from here: " + excerpt(rest)
	}
	return "it ends too early: a message is one line, without line breaks"
}

// isLog reports whether a line looks like the output of a logger or of a print.
func isLog(line []byte) bool {
	if kindOf(line) != anObject {
		return true
	}
	all := membersOf(line)
	return len(all) > 0 && !slices.ContainsFunc(all, func(m member) bool {
		return slices.Contains([]string{"jsonrpc", "id", "method", "params", "result", "error"}, m.name)
	})
}

const (
	anObject = "an object"
	aList    = "a list"
)

// kindOf names the kind of a JSON text by its first character.
func kindOf(data []byte) string {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return "empty"
	}
	switch data[0] {
	case '{':
		return anObject
	case '[':
		return aList
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object in their order, none of another text.
func membersOf(data []byte) (all []member) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		m := member{name: fmt.Sprint(name)}
		if err != nil || d.Decode(&m.value) != nil {
			return all
		}
		all = append(all, m)
	}
	return all
}

// itemsOf returns the items of a list, named by their places, none of another text.
func itemsOf(data []byte) (all []member) {
	var items []json.RawMessage
	_ = json.Unmarshal(data, &items) // another text has none
	for i, item := range items {
		all = append(all, member{fmt.Sprintf("[%d]", i), item})
	}
	return all
}

func firstWrong(all []member, wrong func(member) string) string {
	for _, m := range all {
		if text := wrong(m); text != "" {
			return text
		}
	}
	return ""
}

// typesOf returns the types of the members of a structure.
func typesOf(t reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			for inner, of := range typesOf(f.Type) {
				types[inner] = of
			}
		case name != "" && name != "-":
			types[name] = f.Type
		}
	}
	return types
}

// excerpt returns the beginning of a text for an error: JSON as it is, and quoted if it could not be printed in a line.
func excerpt(text []byte) string {
	const limit = 200
	more := ""
	if text = bytes.TrimSpace(text); len(text) > limit {
		end := limit
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text, more = text[:end], "…"
	}
	if !utf8.Valid(text) || bytes.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) || len(text) == 0 {
		return strconv.Quote(string(text)) + more
	}
	return string(text) + more
}
