package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A command whose end comes right after its beginning is one line, any other
// two; the ring remembers the last lines in order.
func TestServerLog(t *testing.T) {
	var l serverLog
	s := &Server{address: "a:1"}
	begin := func(conn int64) int64 {
		return l.add(logEntry{server: s, conn: conn, command: "find", about: "db.c"})
	}
	end := func(n, conn int64, o outcome) {
		o.ended = true
		l.end(n, logEntry{server: s, conn: conn, command: "find", about: "db.c", outcome: o})
	}
	end(begin(1), 1, outcome{took: time.Millisecond})
	one := begin(1)
	two := begin(2)
	end(two, 2, outcome{code: 91, name: "ShutdownInProgress", labels: []string{"A", "B"}, message: "two\n lines"})
	end(one, 1, outcome{closed: true})
	end(begin(3), 3, outcome{concern: true, code: 64, name: "WriteConcernFailed"})
	three := begin(3)
	l.add(logEntry{server: s, text: "steps down"})
	end(0, 4, outcome{code: 1, name: "InternalError"}) // its beginning was not logged
	_ = three
	var got []string
	for _, line := range l.between(time.Time{}, time.Now()) {
		got = append(got, line.Server+" "+line.Text)
	}
	want := []string{
		"a:1 conn 1: find db.c ok (1ms)",
		"a:1 conn 1: find db.c begins",
		"a:1 conn 2: find db.c error 91 ShutdownInProgress {A, B} (0s): two lines",
		"a:1 conn 1: find db.c gets no reply: the connection is closed (0s)",
		"a:1 conn 3: find db.c ok, with a write concern error 64 WriteConcernFailed (0s)",
		"a:1 conn 3: find db.c begins",
		"a:1 steps down",
		"a:1 conn 4: find db.c error 1 InternalError (0s)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range 2*logLines + 7 {
		l.add(logEntry{server: s, text: fmt.Sprint(i)})
	}
	all := l.between(time.Time{}, time.Now())
	if len(all) != logLines || all[0].Text != fmt.Sprint(logLines+7) || all[logLines-1].Text != fmt.Sprint(2*logLines+6) {
		t.Errorf("%d lines from %q to %q", len(all), all[0].Text, all[len(all)-1].Text)
	}
	// An end is written over its beginning in a ring that has turned, too.
	end(begin(9), 9, outcome{})
	if all = l.between(time.Time{}, time.Now()); all[logLines-1].Text != "conn 9: find db.c ok (0s)" || all[logLines-2].Text != fmt.Sprint(2*logLines+6) {
		t.Errorf("the last lines are %q", all[logLines-2:])
	}
}
