package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/text/jsonerror"
)

// ProtocolError reports that an adapter sent what the protocol does not allow.
type ProtocolError struct {
	err  error
	want string // what utr expected, "" if Err has it
}

// Error names what the adapter sent, and what was expected.
func (e *ProtocolError) Error() string {
	if e.want == "" {
		return e.err.Error()
	}
	return e.err.Error() + "; expected " + e.want
}

func (e *ProtocolError) Unwrap() error { return e.err }

const aMessage = `a JSON-RPC 2.0 message in one line, such as {"jsonrpc":"2.0","id":1,"result":{}}`

// notAMessage is the error of a line that cannot be decoded.
func notAMessage(line []byte, err error) error {
	if isLog(line) {
		err = errors.New("print logs to standard error, not to standard output")
	}
	return &ProtocolError{fmt.Errorf("a line that is not a message: %s (%w)", jsonerror.Excerpt(line), err), aMessage}
}

// badResult is the error of a result that cannot be decoded into a value.
func badResult(during string, result []byte, into any, err error) error {
	return &ProtocolError{fmt.Errorf("the adapter answered %s wrongly: %w: %s", during, err, jsonerror.Excerpt(result)),
		shapeOf(into)}
}

// shapeOf returns the members of a result, such as {"error", "result"}.
func shapeOf(into any) string {
	var names []string
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			switch {
			case name != "" && name != "-":
				names = append(names, `"`+name+`": …`)
			case t.Field(i).Anonymous && t.Field(i).Type.Kind() == reflect.Struct:
				add(t.Field(i).Type)
			}
		}
	}
	if t := reflect.TypeOf(into).Elem(); t.Kind() == reflect.Struct {
		add(t)
	}
	if len(names) == 0 {
		return "{}"
	}
	return "an object with members of {" + strings.Join(names, ", ") + "}"
}

// emptyArray is how some languages write an empty object.
var emptyArray = []byte("[]")

func isEmptyArray(data []byte) bool { return bytes.Equal(bytes.TrimSpace(data), emptyArray) }

// arraysFor returns the places in a JSON text where [] stands for a document of a Go value that was decoded from it.
func arraysFor(t reflect.Type, data []byte, at string) (places []string) {
	if !bytes.Contains(data, emptyArray) {
		return nil
	}
	var items []json.RawMessage
	var members map[string]json.RawMessage
	switch {
	case t == reflect.TypeFor[document]():
		if isEmptyArray(data) {
			places = []string{at}
		}
	case t.Kind() == reflect.Pointer:
		places = arraysFor(t.Elem(), data, at)
	case t.Kind() == reflect.Slice && json.Unmarshal(data, &items) == nil:
		for _, item := range items {
			places = append(places, arraysFor(t.Elem(), item, at+"[]")...)
		}
	case t.Kind() == reflect.Map && json.Unmarshal(data, &members) == nil:
		for _, key := range slices.Sorted(maps.Keys(members)) {
			places = append(places, arraysFor(t.Elem(), members[key], at+"."+key)...)
		}
	case t.Kind() == reflect.Struct && json.Unmarshal(data, &members) == nil:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if t.Field(i).Anonymous && name == "" {
				places = append(places, arraysFor(t.Field(i).Type, data, at)...)
			} else if member := members[name]; name != "" && member != nil {
				places = append(places, arraysFor(t.Field(i).Type, member, strings.TrimPrefix(at+"."+name, "."))...)
			}
		}
	}
	return places
}
