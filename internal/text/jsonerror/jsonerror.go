// Package jsonerror describes what is wrong with a JSON text that cannot be decoded into a Go type, for users who write
// that text: the place, what is there, and what is expected.
package jsonerror

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// Decoder decodes JSON. The zero Decoder is strict: unknown members are errors.
type Decoder struct {
	Loose bool // unknown members are ignored
	// Special describes what is wrong with a text for a type that has its own form; known reports whether it handles
	// the type. It may be nil.
	Special func(t reflect.Type, data []byte, name string) (wrong string, known bool)
}

// Decode decodes one value.
func (d Decoder) Decode(data []byte, into any) error {
	reader := json.NewDecoder(bytes.NewReader(data))
	if !d.Loose {
		reader.DisallowUnknownFields()
	}
	err := reader.Decode(into)
	if err == nil {
		if _, end := reader.Token(); errors.Is(end, io.EOF) {
			return nil
		}
	}
	if text := notJSON(data); text != "" {
		return errors.New(text)
	}
	if text := d.Wrong(reflect.TypeOf(into).Elem(), data, ""); text != "" {
		return errors.New(text)
	}
	return err
}

// Wrong describes the first error in a JSON text that cannot be decoded into a Go type, or returns "".
func (d Decoder) Wrong(t reflect.Type, data []byte, at string) string {
	is, name := Kind(data), cmp.Or(at, "it")
	must := func(want string) string {
		if is == want || is == "null" {
			return ""
		}
		return fmt.Sprintf("%s is %s, not %s", name, is, want)
	}
	if text, known := d.own(t, data, name); known {
		return text
	}
	switch t.Kind() {
	case reflect.Pointer:
		if is == "null" {
			return ""
		}
		return d.Wrong(t.Elem(), data, at)
	case reflect.Struct:
		if is != Object {
			return must(Object)
		}
		return d.wrongMember(t, data, at)
	case reflect.Map:
		return cmp.Or(must(Object), First(Members(data), func(m Member) string {
			if t.Key().Kind() != reflect.String && strings.Trim(m.Name, "0123456789") != "" {
				return fmt.Sprintf("the member %q of %s is not an index", m.Name, name)
			}
			return d.Wrong(t.Elem(), m.Value, at+"."+m.Name)
		}))
	case reflect.Slice:
		return cmp.Or(must(List), First(Items(data), func(m Member) string {
			return d.Wrong(t.Elem(), m.Value, at+m.Name)
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
		return fmt.Sprintf("%s is %s, not an integer of %d bits", name, Excerpt(data), t.Bits())
	}
}

// own is Wrong for types that decode themselves, and for the types of Special.
func (d Decoder) own(t reflect.Type, data []byte, name string) (text string, known bool) {
	isTime := t == reflect.TypeFor[time.Time]()
	if !isTime && t != reflect.TypeFor[json.RawMessage]() && d.Special != nil {
		if text, known := d.Special(t, data, name); known {
			return text, true
		}
	}
	if t.Kind() == reflect.Pointer || !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "", false
	}
	switch err := json.Unmarshal(data, reflect.New(t).Interface()); {
	case err == nil:
		return "", true
	case isTime:
		return fmt.Sprintf("%s is %s, not a time such as 2027-01-31T08:00:00Z", name, Excerpt(data)), true
	}
	return fmt.Sprintf("%s must not be %s", name, Excerpt(data)), true
}

// wrongMember is Wrong for a structure.
func (d Decoder) wrongMember(t reflect.Type, data []byte, at string) string {
	types := typesOf(t)
	return First(Members(data), func(m Member) string {
		for name, of := range types {
			if strings.EqualFold(name, m.Name) { // as encoding/json does
				return d.Wrong(of, m.Value, strings.TrimPrefix(at+"."+m.Name, "."))
			}
		}
		if d.Loose {
			return ""
		}
		text := fmt.Sprintf("%s has the unknown member %q", cmp.Or(at, "it"), m.Name)
		if likely := suggest.Word(m.Name, slices.Sorted(maps.Keys(types))); likely != "" {
			text += fmt.Sprintf(" (did you mean %s?)", likely)
		}
		return text
	})
}

// notJSON describes the first place at which a text is not valid JSON.
func notJSON(data []byte) string {
	syntax := (*json.SyntaxError)(nil)
	if err := json.Unmarshal(data, new(any)); !errors.As(err, &syntax) || syntax.Offset > int64(len(data)) {
		return ""
	}
	if syntax.Error() == "unexpected end of JSON input" {
		return "it ends too early: it must be one line, without line breaks"
	}
	from := max(0, syntax.Offset-1)
	if from > 0 && json.Valid(data[:from]) {
		return "it continues after its end with " + Excerpt(data[from:])
	}
	for from > 0 && unicode.IsLetter(rune(data[from])) && unicode.IsLetter(rune(data[from-1])) {
		from-- // to the beginning of the word
	}
	return "it is not JSON from here: " + Excerpt(data[from:])
}

// The kinds of a text that can have several parts.
const (
	Object = "an object"
	List   = "a list"
)

// Kind returns the kind of a JSON text, by its first character.
func Kind(data []byte) string {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return "empty"
	}
	switch data[0] {
	case '{':
		return Object
	case '[':
		return List
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Member is a member of an object, or an item of a list.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of an object in their order. It returns nil if the text is not an object.
func Members(data []byte) (all []Member) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		m := Member{Name: fmt.Sprint(name)}
		if err != nil || d.Decode(&m.Value) != nil {
			return all
		}
		all = append(all, m)
	}
	return all
}

// Items returns the items of a list, named by their places. It returns nil if the text is not a list.
func Items(data []byte) (all []Member) {
	var items []json.RawMessage
	_ = json.Unmarshal(data, &items) // if it fails, items is empty
	for i, item := range items {
		all = append(all, Member{fmt.Sprintf("[%d]", i), item})
	}
	return all
}

// First returns the first text, other than "", that wrong returns for a member.
func First(all []Member, wrong func(Member) string) string {
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
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			for inner, of := range typesOf(f.Type) {
				types[inner] = of
			}
		case name != "-":
			types[cmp.Or(name, f.Name)] = f.Type
		}
	}
	return types
}

// Excerpt returns the beginning of a text for an error. Text with unprintable characters is quoted.
func Excerpt(text []byte) string {
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
