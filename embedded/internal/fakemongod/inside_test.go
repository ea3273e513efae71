package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// inside runs a mongod, named a in the story, in this process, and its host in another. stop returns its exit code.
func (s *story) inside(args ...string) (stop func() int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	logged, log := io.Pipe()
	env := Environment{Stdout: log, Stderr: io.Discard, Self: filepath.Join(s.release, "bin", "mongod")}
	env.Getenv = func(string) string { return "" }
	go func() {
		ended <- Run(ctx, false, append(args, "--bind_ip", s.host, "--port", s.fill("PORT(a)")), env)
		_ = log.Close()
	}()
	ready := make(chan bool)
	serves := sync.OnceFunc(func() { close(ready) })
	go func() {
		for lines := bufio.NewScanner(logged); lines.Scan(); {
			if strings.Contains(lines.Text(), `"Waiting for connections"`) {
				serves()
			}
		}
	}()
	stop = func() int {
		cancel()
		code := testkit.Receive(s.t, "the end of mongod", ended)
		ended <- code
		return code
	}
	s.t.Cleanup(func() { stop() })
	testkit.Receive(s.t, "mongod to serve", ready)
	return stop
}

// Run ends without leaking goroutines, which TestMain checks, even with an idle connection.
func TestRunEnds(t *testing.T) {
	for _, args := range [][]string{nil, {"--replSet", "rs"}} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			s := newStory(t)
			stop := s.inside(args...)
			s.step(`a {"ping": 1} -> "ok": 1.0`)
			if args != nil {
				s.step(`a {"replSetInitiate": {}} -> "ok": 1.0`)
				s.step(`insert a`)
			}
			connect(t, s.address("a")) // sends nothing
			if code := stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// Invalid requests are rejected and have no effect.
func TestInvalidRequests(t *testing.T) {
	s := newStory(t)
	s.inside("--replSet", "rs")
	address := s.address("a")
	s.step(`a {"replSetInitiate": {}} -> "ok": 1.0`)
	var state struct {
		State string
		Host  struct{ Address, Token string }
	}
	if err := json.Unmarshal([]byte(say(t, address, `utr {"kind":"state"}`+"\n")), &state); err != nil ||
		state.State != "member" || state.Host.Address == "" {
		t.Fatalf("%+v, %v", state, err)
	}
	join := func(rest string) string {
		return `utr {"kind":"join","host":{"token":"` + state.Host.Token + `"},"member":"x:1"` + rest + "}\n"
	}
	for _, r := range []struct{ reason, address, bytes, want string }{
		{"unknown request", address, `utr {"kind":"sing"}` + "\n", `{"error":"unknown request sing"}`},
		{"invitation of a member", address, `utr {"kind":"invite","set":"rs"}` + "\n",
			`{"error":"the process is not waiting for the configuration of rs"}`},
		{"not JSON", address, "utr nonsense\n", ""},
		{"request without an end", address, "utr " + strings.Repeat("x", 2<<20), ""},
		{"wrong token", state.Host.Address, `utr {"kind":"join","host":{"token":"wrong"},"member":"x"}` + "\n",
			`{"error":"this is the host of another deployment"}`},
		{"no token", state.Host.Address, `utr {"kind":"join"}` + "\n", `{"error":"this is the host of another deployment"}`},
		{"client", state.Host.Address, "\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xd4\x07\x00\x00", ""},
		{"not a member", state.Host.Address, join(`,"server":{"pid":1}`), `{"error":"x:1 is not a member of rs"}`},
		{"no server options", state.Host.Address, join(""), `{"error":"server options are required"}`},
		{"router without a config server", state.Host.Address, join(`,"server":{"pid":1,"router":true}`),
			`{"error":"this replica set was not started with --configsvr"}`},
	} {
		if got := say(t, r.address, r.bytes); got != r.want {
			t.Errorf("%s: got %q, not %q", r.reason, got, r.want)
		}
	}
	s.step(`insert a`)
}

// A host rejects invalid specs, and ends with its context.
func TestHost(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ reason, spec, want string }{
		{"not JSON", "x\n", "can only be started by mongod"},
		{"no input", "", "can only be started by mongod"},
		{"unknown version", `{"version":"3.6"}` + "\n", `server version "3.6"`},
		{"empty configuration", `{"version":"8.0","set":"BQAAAAA="}` + "\n", "contains 0 members"},
	} {
		if err := Host(t.Context(), strings.NewReader(r.spec), io.Discard); err == nil ||
			!strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: got %v", r.reason, err)
		}
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Host(ctx, strings.NewReader(`{"version":"8.0"}`+"\n"), out) }()
	if line, err := bufio.NewReader(in).ReadString('\n'); err != nil ||
		!strings.Contains(line, `"host":{"address":"127.0.0.1:`) {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	if err := testkit.Receive(t, "the end of the host", done); err != nil {
		t.Error(err)
	}
}
