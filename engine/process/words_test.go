package process

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// What an adapter sends wrongly is named in the words of the protocol, with its place.
func TestWords(t *testing.T) {
	into := map[string]func() any{"hello": func() any { return &helloResult{} }, "open": func() any { return &raised{} },
		"do": func() any { return &doResult{} }, "events": func() any { return &eventsResult{} },
		"logs": func() any { return &logsResult{} }, "begin": func() any { return &nothing{} },
		"message": func() any { return &message{} }}
	testkit.PlayCases(t, "testdata/cases/words.txt", func(t *testing.T, in string) string {
		kind, text, _ := strings.Cut(in, " ")
		to := into[kind]()
		err := decode([]byte(text), to)
		if err == nil {
			if missing := lacks(reflect.ValueOf(to).Elem(), []byte(text)); missing != "" {
				return missing
			}
			return "nothing is wrong"
		}
		for _, word := range []string{"json:", "Go ", "bson", "unmarshal", "invalid character", "<nil>"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: an error of Go: %v", in, err)
			}
		}
		return err.Error()
	})
}

// A line that is not a message is quoted, with the reason, and a hint if it is the output of a logger.
func TestNotAMessage(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/lines.txt", func(t *testing.T, line string) string {
		err := (&conversation{open: map[int64]chan message{}}).dispatch([]byte(line))
		if broke := (*ProtocolError)(nil); errors.As(err, &broke) && broke.want != "" {
			testkit.Contains(t, broke.want, aMessage)
			return broke.err.Error()
		}
		return err.Error()
	})
}

// What cannot be decoded has words.
func TestWordsForAll(t *testing.T) {
	for _, text := range []string{"1", `"a"`, "true", "[]", "[1]", "{}", `{"a":1}`, "null"} {
		for _, to := range []any{&helloResult{}, &doResult{}, &eventsResult{}, &callbackParams{}, &logsResult{}, &spansResult{}} {
			of := reflect.TypeOf(to).Elem()
			fails := json.Unmarshal([]byte(text), reflect.New(of).Interface()) != nil
			if says := words().Wrong(of, []byte(text), ""); fails && says == "" {
				t.Errorf("%s is not a %s, but nothing is wrong", text, of)
			}
		}
	}
}
