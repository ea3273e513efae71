package jsonerror

import (
	"fmt"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

type embedded struct {
	Port int16 `json:"port"`
}

type target struct {
	embedded
	Name    string           `json:"name"`
	Start   time.Time        `json:"start"`
	Weights map[uint]float64 `json:"weights"`
	On      *bool            `json:"on"`
	Parts   []target         `json:"parts"`
	Plain   int
}

// Each error names the place that is wrong.
func TestDecode(t *testing.T) {
	for _, r := range []struct{ reason, text, want string }{
		{"all is right", `{"name":"a","port":1,"start":"2027-01-31T08:00:00Z","weights":{"1":2},"on":true,"parts":[{}],"Plain":1}`, "<nil>"},
		{"null is the absence of a value", `{"name":null,"start":null,"weights":null,"on":null,"parts":null}`, "<nil>"},
		{"a misspelled member", `{"nme":1}`, `it has the unknown member "nme" (did you mean name?)`},
		{"a member of a list", `{"parts":[{},{"name":1}]}`, "parts[1].name is a number, not a string"},
		{"a text that is too short", `{"name":`, "it ends too early: it must be one line, without line breaks"},
		{"a word that is not JSON", `{"on":nope}`, "it is not JSON from here: nope}"},
		{"more than one value", `{} {}`, "it continues after its end with {}"},
		{"a number that is too large", `{"port":70000}`, "port is 70000, not an integer of 16 bits"},
		{"another boolean", `{"on":"yes"}`, "on is a string, not a boolean"},
		{"a time", `{"start":"today"}`, `start is "today", not a time such as 2027-01-31T08:00:00Z`},
		{"an index", `{"weights":{"a":1}}`, `the member "a" of weights is not an index`},
		{"a value of a map", `{"weights":{"1":"a"}}`, "weights.1 is a string, not a number"},
		{"a list in place of an object", `[]`, "it is a list, not an object"},
		{"text that cannot be printed", "\x00", `it is not JSON from here: "\x00"`},
	} {
		testkit.Equal(t, r.reason, fmt.Sprint(Decoder{}.Decode([]byte(r.text), new(target))), r.want)
	}
	testkit.Equal(t, "a loose decoder ignores unknown members", Decoder{Loose: true}.Decode([]byte(`{"nme":1}`), new(target)), nil)
	long := fmt.Sprintf("%0300d", 0)
	testkit.Equal(t, "an excerpt is short", len(Excerpt([]byte(long))), 200+len("…"))
}
