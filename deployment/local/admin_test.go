package local

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
)

// embeddedServer gives a server that is not ours to a function that sets up.
func embeddedServer(t *testing.T, o embedded.Options) *server {
	t.Helper()
	d, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(d.Hosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return &server{Process: Process{Name: "somebody"}, place: Place{Port: n}}
}

// With access control, a member stands for election for one who signs in with
// the servers' password, and for nobody else.
func TestStandForElection(t *testing.T) {
	const key = "the password of servers among themselves"
	s := embeddedServer(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Users: []embedded.User{{Database: "local", Name: "__system", Password: key}}})
	for _, row := range []struct {
		reason, key string
		refused     string // part of the error, "" if the server has heard the command
	}{
		{"the password", key, ""},
		{"another password", "guessed", "auth"},
	} {
		a := newAdmin(s, nil, row.key)
		err := a.standForElection(t.Context())
		a.close()
		if row.refused == "" && err != nil && (strings.Contains(err.Error(), "auth") || codeOf(err) == 0) ||
			row.refused != "" && (err == nil || !strings.Contains(strings.ToLower(err.Error()), row.refused)) {
			t.Errorf("%s: got %v", row.reason, err)
		}
	}
}

// A server on our port that tells of another folder is a stranger.
func TestStrangers(t *testing.T) {
	argv := func(words ...string) []string { return words }
	ours := argv("--port", "7", "--dbpath", "/ours")
	for _, row := range []struct {
		reason   string
		theirs   []string
		stranger bool
	}{
		{"ours", argv("mongod", "--port", "7", "--dbpath", "/ours"), false},
		{"with the value in one word", argv("mongod", "--dbpath=/ours"), false},
		{"another folder", argv("mongod", "--port", "7", "--dbpath", "/theirs"), true},
		{"a mongos", argv("mongos", "--configdb", "c/h:1"), true},
		{"one that tells nothing, as behind a script", argv("mongod", "-f", "/etc/mongod.conf"), false},
		{"an option without its value", argv("mongod", "--dbpath"), false},
	} {
		if got := differs(row.theirs, ours); got != row.stranger {
			t.Errorf("%s: got %t", row.reason, got)
		}
	}
}

// A wait ends with what was waited for, why it ended and what was seen last; an
// error that lasts ends it at once.
func TestAwait(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errors.New("patience is over"))
	defer cancel()
	asked := 0
	err := await(ctx, "a miracle", func(context.Context) error { asked++; return errors.New("no") })
	var waited *WaitError
	if !errors.As(err, &waited) || waited.What != "a miracle" || asked < 2 ||
		!strings.HasSuffix(err.Error(), "for a miracle: patience is over (seen last: no)") {
		t.Errorf("asked %d times, got %v", asked, err)
	}
	asked = 0
	err = await(t.Context(), "a miracle", func(context.Context) error { asked++; return permanent{errors.New("never")} })
	if asked != 1 || err == nil || err.Error() != "a miracle: never" {
		t.Errorf("asked %d times, got %v", asked, err)
	}
	if err := await(t.Context(), "a miracle", func(context.Context) error {
		if asked++; asked < 5 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// The first failure ends the others, and is the one that is told.
func TestTogether(t *testing.T) {
	wrong := errors.New("wrong")
	err := together(t.Context(), []int{1, 2, 3}, func(ctx context.Context, i int) error {
		if i == 2 {
			return wrong
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}
