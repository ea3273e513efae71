package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/source"
)

func TestParseKnownFailing(t *testing.T) {
	list, err := ParseKnownFailing("k.txt", strings.NewReader("\n# comment\n  a.yml: x# y$  # DRIVERS-1 # really\n"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if k := list[0]; k.Pattern.String() != "a.yml: x# y$" || k.Reason != "DRIVERS-1 # really" || k.Position != (source.Position{File: "k.txt", Line: 3, Column: 1}) {
		t.Errorf("%+v", k)
	}
	const unexplained = "k:1:1: a known failure needs a reason: pattern # reason"
	for _, r := range []struct {
		reason, line string
		until        string // "" for none
		sometimes    bool
		err          string
	}{
		{"no day", "p # DRIVERS-1", "", false, ""},
		{"a day", "p # until 2027-01-31: DRIVERS-1", "2027-01-31", false, ""},
		{"blanks do no harm", "p #  until  2027-01-31 :  DRIVERS-1", "2027-01-31", false, ""},
		{"a day, and chance", "p # until 2027-01-31: sometimes: DRIVERS-1", "2027-01-31", true, ""},
		{"chance alone", "p # sometimes: DRIVERS-1", "", true, ""},
		{"until in words is a reason", "p # until the server is mended", "", false, ""},
		{"a day that does not exist", "p # until 2027-02-29: DRIVERS-1", "", false, `k:1:1: "2027-02-29" is no day such as 2027-01-31`},
		{"a day in another form", "p # until 31/01/2027: DRIVERS-1", "", false, `k:1:1: "31/01/2027" is no day such as 2027-01-31`},
		{"a day without a reason", "p # until 2027-01-31", "", false, "needs a reason after its day"},
		{"a day with an empty reason", "p # until 2027-01-31:", "", false, "needs a reason after its day"},
		{"no reason", "pattern", "", false, unexplained},
		{"an empty reason", "pattern #", "", false, unexplained},
		{"a hash that nothing separates", "(# reason", "", false, unexplained},
		{"a bad pattern", "# a comment\n( # reason", "", false, "k:2:1: error parsing regexp: missing closing ): `(`"},
		{"a header without a pattern", "[for ]", "", false, "k:1:1: "},
		{"a header with a bad pattern", "[for (]", "", false, "k:1:1: "},
		{"a header without an end", "[for x", "", false, "k:1:1: "},
	} {
		list, err := ParseKnownFailing("k", strings.NewReader(r.line))
		if err != nil || r.err != "" {
			if err == nil || r.err == "" || !strings.Contains(err.Error(), r.err) {
				t.Errorf("%s: the error is %v", r.reason, err)
			}
			continue
		}
		until := ""
		if k := list[0]; !k.Until.IsZero() {
			until = k.Until.Format(time.DateOnly)
		}
		if until != r.until || list[0].Sometimes != r.sometimes {
			t.Errorf("%s: until %q, sometimes %t", r.reason, until, list[0].Sometimes)
		}
	}
}

func TestKnownFailureExpires(t *testing.T) {
	k := KnownFailure{Until: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}
	for _, r := range []struct {
		reason string
		k      KnownFailure
		now    time.Time
		want   bool
	}{
		{"the last moment of its day", k, time.Date(2027, 1, 31, 23, 59, 59, 999, time.UTC), false},
		{"the next day", k, time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC), true},
		{"elsewhere it is the next day already", k, time.Date(2027, 2, 1, 3, 0, 0, 0, time.FixedZone("", 4*3600)), false},
		{"it has no day", KnownFailure{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), false},
	} {
		testkit.Equal(t, r.reason, r.k.Expired(r.now), r.want)
	}
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
