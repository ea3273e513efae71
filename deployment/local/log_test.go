package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTimeOf(t *testing.T) {
	want := time.Date(2026, 11, 21, 18, 0, 0, 123_000_000, time.UTC)
	for _, row := range []struct {
		reason, line string
		ok           bool
	}{
		{"from 4.4 on", `{"t":{"$date":"2026-11-21T18:00:00.123+00:00"},"s":"I","c":"NETWORK","id":23016,"ctx":"listener","msg":"Waiting for connections"}`, true},
		{"in another zone", `{"t":{"$date":"2026-11-21T19:00:00.123+01:00"},"s":"I"}`, true},
		{"4.2", "2026-11-21T18:00:00.123+0000 I  NETWORK  [listener] waiting for connections on port 27017", true},
		{"4.2 with iso8601-utc", "2026-11-21T18:00:00.123Z I  NETWORK  [listener]", true},
		{"a line of a back trace", " ----- BEGIN BACKTRACE -----", false},
		{"cut in the middle", `{"t":{"$date":"2026-11-21T18:00`, false},
		{"another document", `{"a":1}`, false},
		{"nothing", "", false},
	} {
		got, ok := timeOf(row.line)
		if ok != row.ok || ok && !got.Equal(want) {
			t.Errorf("%s: got %s, %t", row.reason, got, ok)
		}
	}
}

func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := "about to start\n" +
		"2026-11-21T18:00:00.000+0000 I one\n" +
		"2026-11-21T18:00:01.000+0000 I two\n" +
		" and what belongs to it\n" +
		"2026-11-21T18:00:02.000+0000 I three " + strings.Repeat("x", 2*tailWidth) + "\n" +
		"2026-11-21T18:00:03.000+0000 I four\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	second := func(n int) time.Time { return time.Date(2026, 11, 21, 18, 0, n, 0, time.UTC) }
	got := linesOf(path, "h:1", second(1), second(2))
	if len(got) != 3 || !strings.HasSuffix(got[0].Text, "two") || got[1].Text != " and what belongs to it" || got[0].Server != "h:1" {
		t.Fatalf("got %v", got)
	}
	if !got[1].Time.Equal(second(1)) {
		t.Errorf("a line without a time is of %s", got[1].Time)
	}
	if n := len([]rune(got[2].Text)); n != tailWidth+1 {
		t.Errorf("a long line has %d characters", n)
	}
	both := merged([][]Line{got[:2], {{second(0), "h:2", "before"}, {second(5), "h:2", "after"}}})
	if both[0].Text != "before" || both[3].Text != "after" {
		t.Errorf("merged: %v", both)
	}
}

// The end of a log is read from the beginning of a line, however long it is.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	line := strings.Repeat("y", 1_000)
	if err := os.WriteFile(path, []byte(strings.Repeat(line+"\n", 3*tailBytes/len(line))+"the last"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(tail(path), "\n")
	if len(got) != tailLines || got[tailLines-1] != "the last" || !strings.HasPrefix(got[0], "yyy") {
		t.Errorf("got %d lines, the last of them %q", len(got), got[len(got)-1])
	}
	if got := tail(path + "nowhere"); !strings.Contains(got, "cannot be read") {
		t.Errorf("a log that is not there: %q", got)
	}
	if got := quoted(" \n"); got != "; it said nothing" {
		t.Errorf("got %q", got)
	}
}

// Whatever a program says, no line of it stops the reading of its log.
func FuzzLogLine(f *testing.F) {
	f.Add(`{"t":{"$date":"2026-11-21T18:00:00.123+00:00"},"s":"I"}`)
	f.Add("2026-11-21T18:00:00.123+0000 I  NETWORK")
	f.Add(`{"t":{"$date":7}}`)
	f.Add("\xff{")
	f.Fuzz(func(t *testing.T, line string) {
		if at, ok := timeOf(line); ok && at.IsZero() {
			t.Error("it has a time that is none")
		}
		if n := len([]rune(shorten(line))); n > tailWidth+1 {
			t.Errorf("%d characters are left", n)
		}
	})
}
