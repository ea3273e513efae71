//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// lockHolder gives the process id in the lock document of a deployment, 0 if
// there is none.
func lockHolder(t *testing.T, uri string) int64 {
	t.Helper()
	found, err := onlooker(t, uri).Database("utr").Collection("lock").Find(t.Context(), bson.D{{Key: "_id", Value: "run"}})
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Raw
	if err := found.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return 0
	}
	return all[0].Lookup("pid").AsInt64()
}

// Two runs on one deployment: the second is refused, names the first and leaves
// it alone; a signal ends the first, and the lock with it.
func TestTwoRuns(t *testing.T) {
	_, uri := serve(t, "--topology", "replicaset")
	ping := witness(t, uri)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		first := start(t, "run", "--uri", uri, "--lock-name", "the first", suiteFile(t, armed))
		until(t, "the fail point is on", func() bool { return ping() != nil })
		if pid := lockHolder(t, uri); pid != int64(first.Process.Pid) {
			t.Errorf("the lock is held by %d, not by %d", pid, first.Process.Pid)
		}
		second := start(t, "run", "--uri", uri, suiteFile(t, suiteText))
		if code := second.exit(t); code != 3 {
			t.Errorf("the second run: exit code %d", code)
		}
		host, _ := os.Hostname()
		for _, part := range []string{"is in use by a run on host " + host, fmt.Sprint("process ", first.Process.Pid), "(the first)", "--wait-for-lock", "utr clean --uri"} {
			if !strings.Contains(second.said(), part) {
				t.Errorf("%q is missing in %q", part, second.said())
			}
		}
		if ping() == nil {
			t.Error("the second run has turned off the fail point of the first")
		}
		if err := first.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := first.exit(t); code != 3 {
			t.Errorf("%s: exit code %d", sig, code)
		}
		if pid := lockHolder(t, uri); pid != 0 {
			t.Errorf("%s: the lock is left by %d", sig, pid)
		}
		if err := ping(); err != nil {
			t.Errorf("%s: the fail point is left: %v", sig, err)
		}
	}
}

// A second run can wait for the first.
func TestSecondRunWaits(t *testing.T) {
	_, uri := serve(t, "--topology", "single")
	ping := witness(t, uri)
	first := start(t, "run", "--uri", uri, suiteFile(t, armed))
	until(t, "the fail point is on", func() bool { return ping() != nil })
	second := start(t, "run", "--uri", uri, "--wait-for-lock", "1m", suiteFile(t, suiteText))
	until(t, "the second run waits", func() bool { return strings.Contains(second.said(), "utr: waiting up to 1m0s for the deployment") })
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := second.exit(t); code != 0 {
		t.Errorf("exit code %d: %s", code, second.said())
	}
}

// A run that was killed leaves its lock and its fail points; utr clean takes
// both away, with what the ledger knows or with the connection string.
func TestKilledThenCleaned(t *testing.T) {
	const password = "s3cret-pw"
	for _, r := range []struct {
		reason string
		user   bool // the deployment wants a password, which no ledger knows
		args   func(uri string) []string
	}{
		{"the ledger knows all", false, func(string) []string { return nil }},
		{"a connection string", false, func(uri string) []string { return []string{"--uri", uri} }},
		{"the password is not in the ledger", true, func(uri string) []string { return []string{"--uri", uri} }},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			env := []string{"UTR_PASSWORD=" + password}
			args := []string{"serve", "--topology", "replicaset"}
			if r.user {
				args = append(args, "--user", "bob")
			}
			uri := startIn(t, env, args...).line(t, "connection string", func(s string) bool { return strings.HasPrefix(s, "mongodb://") })
			uri = strings.Replace(uri, "***@", "bob:"+password+"@", 1)
			ping := witness(t, uri)
			killed := startIn(t, env, "run", "--uri", uri, suiteFile(t, armed))
			until(t, "the fail point is on", func() bool { return ping() != nil })
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed.exit(t)
			if pid := lockHolder(t, uri); pid != int64(killed.Process.Pid) || ping() == nil {
				t.Fatalf("what the run leaves: a lock of %d, ping %v", pid, ping())
			}
			if r.user {
				without := startIn(t, env, "clean")
				if code := without.exit(t); code != 3 || !strings.Contains(without.said(), "password") {
					t.Errorf("clean without the password: exit code %d: %s", code, without.said())
				}
			}
			clean := startIn(t, env, append([]string{"clean"}, r.args(uri)...)...)
			out := clean.all(t)
			if code := clean.exit(t); code != 0 {
				t.Errorf("clean: exit code %d: %s%s", code, out, clean.said())
			}
			for _, part := range []string{fmt.Sprint("process ", killed.Process.Pid), "failCommand", "taken away"} {
				if !strings.Contains(out, part) {
					t.Errorf("%q is missing in %q", part, out)
				}
			}
			if pid := lockHolder(t, uri); pid != 0 {
				t.Errorf("the lock is left by %d", pid)
			}
			if err := ping(); err != nil {
				t.Errorf("the fail point is left: %v", err)
			}
			last := startIn(t, env, "clean")
			if out := last.all(t); last.exit(t) != 0 || out != "nothing was left" {
				t.Errorf("after clean: %q %q", out, last.said())
			}
			well := startIn(t, env, "run", "--uri", uri, suiteFile(t, suiteText))
			if code := well.exit(t); code != 0 {
				t.Errorf("the run after clean: exit code %d: %s", code, well.said())
			}
			if text := out + well.said() + clean.said(); strings.Contains(text, password) {
				t.Errorf("the password is out: %s", text)
			}
		})
	}
}

// A run that was killed is not waited for on the machine where it was killed: the
// next one takes its lock, and turns its fail points off.
func TestKilledThenRunAgain(t *testing.T) {
	if ledger.Here() == "" {
		t.Skip("this system does not tell where a process id means something")
	}
	_, uri := serve(t, "--topology", "replicaset")
	ping := witness(t, uri)
	killed := start(t, "run", "--uri", uri, suiteFile(t, armed))
	until(t, "the fail point is on", func() bool { return ping() != nil })
	second := start(t, "run", "--uri", uri, suiteFile(t, suiteText))
	if code := second.exit(t); code != 3 || !strings.Contains(second.said(), "utr clean --uri") {
		t.Errorf("while the first one runs: exit code %d: %s", code, second.said())
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.exit(t)
	next := start(t, "run", "--uri", uri, suiteFile(t, suiteText))
	if code := next.exit(t); code != 0 || !strings.Contains(next.said(), "which is gone") || !strings.Contains(next.said(), "turned off: failCommand") {
		t.Errorf("the next run: exit code %d: %s", code, next.said())
	}
	if err := ping(); err != nil {
		t.Errorf("the fail point is left: %v", err)
	}
}

// A fail point that another tool left on is noticed at the start of a run, and
// turned off; the suites then pass.
func TestLeftFailPointIsNoticed(t *testing.T) {
	_, uri := serve(t, "--topology", "replicaset")
	if _, err := ask(t, onlooker(t, uri), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 8}}}}); err != nil {
		t.Fatal(err)
	}
	u := start(t, "run", "--uri", uri, suiteFile(t, suiteText))
	if code := u.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(u.said(), "utr: left over from an earlier run, and turned off: failCommand was on at 127.0.0.1:") {
		t.Errorf("standard error: %q", u.said())
	}
	u = start(t, "run", "--uri", uri, suiteFile(t, suiteText))
	if code := u.exit(t); code != 0 || strings.Contains(u.said(), "left over") {
		t.Errorf("the next run: exit code %d: %q", code, u.said())
	}
}

// A fail point that keeps every client out, since it fails the handshake, is
// turned off by the next run and by utr clean all the same.
func TestHandshakeFailPoint(t *testing.T) {
	for _, r := range []struct {
		reason string
		args   func(uri string) []string
		says   string
	}{
		{"the next run", func(uri string) []string { return []string{"run", "--uri", uri, suiteFile(t, suiteText)} }, "utr: left over from an earlier run, and turned off: failCommand was on at 127.0.0.1:"},
		{"utr clean", func(uri string) []string { return []string{"clean", "--uri", uri} }, "turned off: failCommand was on at 127.0.0.1:"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			_, uri := serve(t, "--topology", "single")
			if _, err := ask(t, onlooker(t, uri), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"hello", "isMaster"}}, {Key: "closeConnection", Value: true}}}}); err != nil {
				t.Fatal(err)
			}
			u := start(t, r.args(withOption(uri, quickly))...)
			out := u.all(t)
			if code := u.exit(t); code != 0 || !strings.Contains(out+u.said(), r.says) {
				t.Errorf("exit code %d: %s%s", code, out, u.said())
			}
			if err := witness(t, uri)(); err != nil {
				t.Errorf("a client: %v", err)
			}
		})
	}
}
