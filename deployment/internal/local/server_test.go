package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// With access control, only the internal user may call for an election.
func TestStepUp(t *testing.T) {
	const key = "the internal password"
	system := []embedded.User{{Database: "local", Name: "__system", Password: key}}
	d, err := embedded.Start(t.Context(), embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Users: system})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, d.Close()) }()
	_, port, _ := net.SplitHostPort(d.Hosts()[0])
	n, err := strconv.Atoi(port)
	testkit.Check(t, err)
	for password, authorized := range map[string]bool{key: true, "guessed": false} {
		s := &server{Process: Process{Name: "somebody"}, place: Place{Port: n}, key: password}
		err := s.stepUp(t.Context())
		refused := err != nil && (direct.CodeOf(err) == 0 || strings.Contains(strings.ToLower(err.Error()), "auth"))
		if refused == authorized {
			t.Errorf("with the password %q: %v", password, err)
		}
	}
}

// The error of a wait reports what it waited for, why it ended and the last error. A permanent error ends it.
func TestAwait(t *testing.T) {
	for _, r := range []struct {
		reason string
		errs   []error // the last one repeats
		tries  int
		want   string
	}{
		{"it never succeeds", []error{errors.New("no")}, 12, "waited 1s for a miracle: patience is over (last error: no)"},
		{"it succeeds", []error{errors.New("not yet"), errors.New("nor now"), nil}, 3, ""},
		{"a permanent error", []error{permanent{errors.New("never")}}, 1, "a miracle: never"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := errors.New("patience is over")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, over)
				defer cancel()
				tries := 0
				err := await(ctx, "a miracle", func(context.Context) error { tries++; return r.errs[min(tries, len(r.errs))-1] })
				testkit.Equal(t, "tries, and whether the error wraps the cause", []any{tries, errors.Is(err, over)},
					[]any{r.tries, strings.Contains(r.want, over.Error())})
				if err != nil || r.want != "" {
					testkit.ErrorContains(t, err, r.want)
				}
			})
		})
	}
}

// logged writes a log file.
func logged(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLines(t *testing.T) {
	day := "2026-11-21T18:00:0"
	one := logged(t, "about to start\n"+day+"0.000+0000 I one\n"+day+"1.000+0000 I two\n and what belongs to it\n"+
		day+"2.000+0000 I three "+strings.Repeat("x", 2*tailWidth)+"\n"+day+"3.000+0000 I four\n")
	two := logged(t, day+"1.500+0000 I meanwhile\n")
	second := func(n int) time.Time { return time.Date(2026, 11, 21, 18, 0, n, 0, time.UTC) }
	got := ReadLogs(map[string]string{"h:1": one, "h:2": two, "h:3": "nowhere"}, second(1), second(2))
	for i, want := range []string{
		"h:1 " + day + "1.000+0000 I two", "h:1  and what belongs to it", "h:2 " + day + "1.500+0000 I meanwhile",
		"h:1 " + day + "2.000",
	} {
		testkit.Contains(t, got[i].Server+" "+got[i].Text, want)
	}
	// A line without a timestamp has the timestamp of the previous line, and a long line is shortened.
	testkit.Equal(t, "lines, time, and width", []any{len(got), got[1].Time.Equal(second(1)), len([]rune(got[3].Text))},
		[]any{4, true, tailWidth + 1})
}

// The tail of a log starts at a line.
func TestTail(t *testing.T) {
	line := strings.Repeat("y", 1_000)
	path := logged(t, strings.Repeat(line+"\n", 3*tailBytes/len(line))+"the last")
	got := strings.Split(tail(path), "\n")
	testkit.Equal(t, "lines, the first and the last", []any{len(got), got[0][:3], got[len(got)-1]},
		[]any{tailLines, "yyy", "the last"})
	testkit.Contains(t, tail(path+"nowhere"), "cannot read")
	testkit.Equal(t, "an empty output", quoted(" \n"), "; no output")
}

// No line of a log causes a panic.
func FuzzLogLine(f *testing.F) {
	f.Add(`{"t":{"$date":"2026-11-21T18:00:00.123+00:00"},"s":"I"}`)
	f.Add("2026-11-21T18:00:00.123+0000 I  NETWORK")
	f.Add(`{"t":{"$date":7}}`)
	f.Add("\xff{")
	f.Fuzz(func(t *testing.T, line string) {
		if at, ok := timeOf(line); ok && at.IsZero() {
			t.Error("its time is zero")
		}
		if n := len([]rune(shorten(line))); n > tailWidth+1 {
			t.Errorf("shortened to %d characters", n)
		}
	})
}
