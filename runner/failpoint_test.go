package runner

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Each row sets fail points with a letter for each command, an address, and the hits that the server reported (? for
// none). "off" turns the fail point off. The last word is what the server reports at the end.
func TestNeverFired(t *testing.T) {
	for _, r := range []struct{ reason, set, end, want string }{
		{"it fired", "A@x:3", "x:4", ""},
		{"it never fired", "A@x:3", "x:3", "A@x"},
		{"the server was restarted, so that its count is lower", "A@x:3", "x:0", ""},
		{"the server reported no count at the end, as before 4.4", "A@x:3", "x:?", ""},
		{"the adapter returned no reply", "A@x:?", "x:3", ""},
		{"the first one fired, and the second one did not", "A@x:3 B@x:4", "x:4", "B@x"},
		{"the second one fired, and the first one did not", "A@x:3 B@x:3", "x:4", "A@x"},
		{"the same one fired once: the test depends on chance", "A@x:3 A@x:3 A@x:4", "x:4", ""},
		{"none of the same ones fired", "A@x:3 A@x:3", "x:3", "A@x A@x"},
		{"on another server", "A@x:3 B@y:5", "x:3 y:6", "A@x"},
		{"the test turned it off", "A@x:3 off@x:4", "x:4", ""},
		{"the test turned it off, and it never fired", "A@x:3 off@x:3", "x:3", "A@x"},
	} {
		parse := func(words string) (points []*failPoint) {
			for word := range strings.FieldsSeq(words) {
				where, count, _ := strings.Cut(word, ":")
				f := &failPoint{}
				if f.command, f.address, _ = strings.Cut(where, "@"); f.address == "" {
					f.address = where
				}
				if f.on = f.command != "off"; count != "?" {
					n := hits(count[0] - '0')
					f.before = &n
				}
				points = append(points, f)
			}
			return points
		}
		end := map[string]*hits{}
		for _, f := range parse(r.end) {
			end[f.key()] = f.before
		}
		var got []string
		for _, f := range neverFired(parse(r.set), end) {
			got = append(got, f.command+"@"+f.address)
		}
		testkit.Equal(t, r.reason, strings.Join(got, " "), r.want)
	}
}

// A message says whether commands can have matched a fail point that never fired.
func TestConfigured(t *testing.T) {
	for _, r := range []struct {
		reason, mode string
		on           bool
		idle         string
	}{
		{"a number of commands", `{"times": 1}`, true, "no command matched it"},
		{"all commands", `"alwaysOn"`, true, "no command matched it"},
		{"it is turned off", `"off"`, false, "no command matched it"},
		{"the first commands are spared", `{"skip": 1}`, true, "no command matched it, or it spared all that did"},
		{"by chance", `{"activationProbability": 0.5}`, true, "no command matched it, or it spared all that did"},
	} {
		f := configured(testkit.Extended[bson.Raw](t, `{"configureFailPoint": "failCommand", "mode": `+r.mode+`}`), "",
			source.Position{})
		testkit.Equal(t, r.reason, []any{f.name, f.on, f.idle}, []any{"failCommand", r.on, r.idle})
	}
}
