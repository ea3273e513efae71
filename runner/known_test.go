package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestParseKnownFailing(t *testing.T) {
	const unexplained = "k:1:1: a known failure needs a reason: pattern # reason"
	for _, r := range []struct{ reason, text, want string }{ // position, pattern, reason, day, and chance; or a part of the error
		{"blanks and comments", "\n# comment\n  a.yml: x# y$  # DRIVERS-1 # really\n", `k:3:1 "a.yml: x# y$" "DRIVERS-1 # really" "" false`},
		{"a day", "p # until 2027-01-31: DRIVERS-1", `k:1:1 "p" "until 2027-01-31: DRIVERS-1" "2027-01-31" false`},
		{"blanks around the day", "p #  until  2027-01-31 :  DRIVERS-1", `k:1:1 "p" "until  2027-01-31 :  DRIVERS-1" "2027-01-31" false`},
		{"a day, and chance", "p # until 2027-01-31: sometimes: DRIVERS-1", `k:1:1 "p" "until 2027-01-31: sometimes: DRIVERS-1" "2027-01-31" true`},
		{"chance alone", "p # sometimes: DRIVERS-1", `k:1:1 "p" "sometimes: DRIVERS-1" "" true`},
		{"until in words is a reason", "p # until the server is mended", `k:1:1 "p" "until the server is mended" "" false`},
		{"a day that does not exist", "p # until 2027-02-29: DRIVERS-1", `k:1:1: "2027-02-29" is no day such as 2027-01-31`},
		{"a day in another form", "p # until 31/01/2027: DRIVERS-1", `k:1:1: "31/01/2027" is no day such as 2027-01-31`},
		{"a day without a reason", "p # until 2027-01-31", "needs a reason after its day"},
		{"a day with an empty reason", "p # until 2027-01-31:", "needs a reason after its day"},
		{"no reason", "pattern", unexplained},
		{"an empty reason", "pattern #", unexplained},
		{"a hash that nothing separates", "(# reason", unexplained},
		{"a bad pattern", "# a comment\n( # reason", "k:2:1: error parsing regexp: missing closing ): `(`"},
		{"a header without a pattern", "[for ]", "k:1:1: "},
		{"a header with a bad pattern", "[for (]", "k:1:1: "},
		{"a header without an end", "[for x", "k:1:1: "},
	} {
		list, err := ParseKnownFailing("k", strings.NewReader(r.text))
		got := fmt.Sprint(err)
		if err == nil && len(list) == 1 {
			k, until := list[0], ""
			if !k.Until.IsZero() {
				until = k.Until.Format(time.DateOnly)
			}
			got = fmt.Sprintf("%s %q %q %q %t", k.Position, k.Pattern, k.Reason, until, k.Sometimes)
		}
		if got != r.want && (err == nil || !strings.Contains(got, r.want)) {
			t.Errorf("%s: got %s, want %s", r.reason, got, r.want)
		}
	}
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
