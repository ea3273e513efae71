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

	"github.com/unified-test-runner/utr/deployment/wire"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// With access control, a member stands for election for one who signs in with
// the servers' password, and for nobody else.
func TestStandForElection(t *testing.T) {
	const key = "the password of servers among themselves"
	system := []embedded.User{{Database: "local", Name: "__system", Password: key}}
	d, err := embedded.Start(t.Context(), embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Users: system})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, d.Close()) }()
	_, port, _ := net.SplitHostPort(d.Hosts()[0])
	n, err := strconv.Atoi(port)
	testkit.Check(t, err)
	for password, heard := range map[string]bool{key: true, "guessed": false} {
		s := &server{Process: Process{Name: "somebody"}, place: Place{Port: n}, key: password}
		err := s.standForElection(t.Context())
		refused := err != nil && (wire.CodeOf(err) == 0 || strings.Contains(strings.ToLower(err.Error()), "auth"))
		if refused == heard {
			t.Errorf("with the password %q: %v", password, err)
		}
	}
}

// The error of a wait says what was waited for, why it ended and what was seen
// last; an error that lasts ends it at once.
func TestAwait(t *testing.T) {
	for _, r := range []struct {
		reason string
		ask    []error // the last of them again and again
		asked  int
		want   string
	}{
		{"it never comes", []error{errors.New("no")}, 12, "waited 1s for a miracle: patience is over (seen last: no)"},
		{"it comes", []error{errors.New("not yet"), errors.New("nor now"), nil}, 3, ""},
		{"it cannot come", []error{permanent{errors.New("never")}}, 1, "a miracle: never"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := errors.New("patience is over")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, over)
				defer cancel()
				asked := 0
				err := await(ctx, "a miracle", func(context.Context) error { asked++; return r.ask[min(asked, len(r.ask))-1] })
				testkit.Equal(t, "asked, and its end is known", []any{asked, errors.Is(err, over)}, []any{r.asked, strings.Contains(r.want, over.Error())})
				if err != nil || r.want != "" {
					testkit.Fails(t, err, r.want)
				}
			})
		})
	}
}

// logged writes a log.
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
		"h:1 " + day + "1.000+0000 I two", "h:1  and what belongs to it", "h:2 " + day + "1.500+0000 I meanwhile", "h:1 " + day + "2.000",
	} {
		testkit.Says(t, got[i].Server+" "+got[i].Text, want)
	}
	// A line without a time has that of the one before, and a long one is cut.
	testkit.Equal(t, "lines, time, and width", []any{len(got), got[1].Time.Equal(second(1)), len([]rune(got[3].Text))}, []any{4, true, tailWidth + 1})
}

// The end of a log is read from the beginning of a line, however long it is.
func TestTail(t *testing.T) {
	line := strings.Repeat("y", 1_000)
	path := logged(t, strings.Repeat(line+"\n", 3*tailBytes/len(line))+"the last")
	got := strings.Split(tail(path), "\n")
	testkit.Equal(t, "lines, the first and the last", []any{len(got), got[0][:3], got[len(got)-1]}, []any{tailLines, "yyy", "the last"})
	testkit.Says(t, tail(path+"nowhere"), "cannot be read")
	testkit.Equal(t, "an empty one", quoted(" \n"), "; it said nothing")
}

// Whatever a program says, no line of it stops the reading of its log.
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
			t.Errorf("%d characters are left", n)
		}
	})
}
