package runner

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Cases have a list, and what it says: position, pattern, reason, day, and
// whether the failure comes by chance.
func TestParseKnownFailing(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/known.txt", func(t *testing.T, in string) string {
		text, err := strconv.Unquote(in)
		testkit.Check(t, err)
		list, err := ParseKnownFailing("k", strings.NewReader(text))
		if err != nil {
			return strings.ReplaceAll(err.Error(), "\n", "⏎")
		}
		until := ""
		if !list[0].Until.IsZero() {
			until = list[0].Until.Format(time.DateOnly)
		}
		return fmt.Sprintf("%s %q %q %q %t", list[0].Position, list[0].Pattern, list[0].Reason, until, list[0].Sometimes)
	})
}

func TestKnownFailureExpires(t *testing.T) {
	k := KnownFailure{Until: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}
	for now, want := range map[string]bool{"2027-01-31T23:59:59.999Z": false, "2027-02-01T00:00:00Z": true, "2027-02-01T03:00:00+04:00": false} {
		at, err := time.Parse(time.RFC3339Nano, now)
		testkit.Check(t, err)
		testkit.Equal(t, now, k.Expired(at), want)
	}
	testkit.Equal(t, "without a day", (&KnownFailure{}).Expired(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), false)
}

func FuzzParseKnownFailing(f *testing.F) {
	for _, seed := range []string{"pattern # reason", "a# b # c\n\n# d", "("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := ParseKnownFailing("k", strings.NewReader(text))
		for _, k := range list {
			if k.Reason == "" || k.Pattern == nil || k.Position.Line < 1 {
				t.Errorf("%q gives %+v", text, k)
			}
		}
	})
}
