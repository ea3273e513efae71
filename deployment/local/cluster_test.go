//go:build unix

package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// patience is for what a busy machine does at last.
const patience = 30 * time.Second

// until asks until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := await(ctx, what, func(context.Context) error {
		if !holds() {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// bench is a place for clusters whose leftovers can be seen.
type bench struct {
	t       *testing.T
	options Options
	state   string // of the ledger
}

func newBench(t *testing.T, r Release) *bench {
	t.Helper()
	b := &bench{t: t, state: t.TempDir()}
	book, err := ledger.Open(b.state)
	if err != nil {
		t.Fatal(err)
	}
	b.options = Options{Release: r, Folder: t.TempDir(), Book: book, Ports: new(Ports), Timeout: patience}
	return b
}

// left lists files that are left of clusters, and entries of the ledger.
func (b *bench) left() (files, entries []string) {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.options.Folder, "*", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	folders, _ := filepath.Glob(filepath.Join(b.options.Folder, "*"))
	entries, _ = filepath.Glob(filepath.Join(b.state, "ledger", "*"))
	for _, f := range folders {
		if inside, _ := os.ReadDir(f); len(inside) == 0 {
			files = append(files, f)
		}
	}
	return files, entries
}

// nothingLeft is what every end must come to: no file, no entry.
func (b *bench) nothingLeft(when string) {
	b.t.Helper()
	if files, entries := b.left(); len(files)+len(entries) > 0 {
		b.t.Errorf("%s: left are %v and %v", when, files, entries)
	}
}

func TestClusterFromBeginningToEnd(t *testing.T) {
	b := newBench(t, fake(t, "standalone"))
	c, err := Start(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	if files, entries := b.left(); len(files) != 2 || len(entries) != 2 {
		t.Errorf("while it runs there are %v and %v: want data and a log, a folder and a process", files, entries)
	}
	if err := c.Dead(); err != nil {
		t.Error(err)
	}
	host := c.Hosts()[0]
	if uri := c.URI(); uri != "mongodb://"+host+"/" || c.SingleURI() != uri || c.DirectURI(host) != uri+"?directConnection=true" {
		t.Errorf("connection strings are %s, %s, %s", uri, c.SingleURI(), c.DirectURI(host))
	}
	if err := errors.Join(c.Close(false), c.Close(false)); err != nil {
		t.Error(err)
	}
	b.nothingLeft("closed")
	if conn, err := net.Dial("tcp", host); err == nil {
		_ = conn.Close()
		t.Error("something listens on its port")
	}
	if c.Dead() == nil {
		t.Error("a closed cluster is said to run")
	}
}

func TestLogsAreKept(t *testing.T) {
	b := newBench(t, fake(t, "standalone"))
	c, err := Start(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(true); err != nil {
		t.Fatal(err)
	}
	files, entries := b.left()
	if len(files) != 1 || filepath.Base(files[0]) != "mongod.log" || filepath.Dir(files[0]) != c.Folder() || len(entries) != 0 {
		t.Errorf("left are %v and %v: want the log alone", files, entries)
	}
	if err := c.RemoveLogs(); err != nil {
		t.Error(err)
	}
	b.nothingLeft("logs removed")
}

// Each flaw ends in an error that says what there is to know, in bounded time,
// and leaves nothing but the logs.
func TestStartFails(t *testing.T) {
	for _, row := range []struct {
		flaw    string
		timeout time.Duration
		starts  int
		want    []string
	}{
		{"refuses its options", patience, 1, []string{"cannot start a standalone of version 8.0.0", "mongod ended: exit status 2 (an option is wrong",
			"    Error parsing command line: unrecognised option '--nounixsocket'", "the logs of the servers are in "}},
		{"does not listen", 300 * time.Millisecond, 1, []string{"waited ", "for mongod to listen on 127.0.0.1:", "the 300ms that a start may take are over", "refused"}},
		{"does not answer", time.Second, 1, []string{"waited ", "for mongod to answer on 127.0.0.1:", "the 1s that a start may take are over"}},
		{"never has a port", patience, portConflicts, []string{"mongod ended: exit status 14", "a line of a back trace"}},
	} {
		t.Run(row.flaw, func(t *testing.T) {
			b := newBench(t, fake(t, row.flaw))
			b.options.Timeout = row.timeout
			starts := 0
			b.options.Ports.listen = func() (net.Listener, error) {
				starts++
				return net.Listen("tcp", net.JoinHostPort(address, "0"))
			}
			c, err := Start(t.Context(), b.options)
			if err == nil {
				t.Fatalf("it started: %v", c.Close(false))
			}
			if want := row.starts; starts != want {
				t.Errorf("it was started %d times, want %d", starts, want)
			}
			var failed *StartError
			if !errors.As(err, &failed) {
				t.Fatalf("%T: %v", err, err)
			}
			for _, part := range row.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not tell %q:\n%s", part, err)
				}
			}
			files, entries := b.left()
			if len(files) != 1 || filepath.Dir(files[0]) != failed.Logs || len(entries) != 0 {
				t.Errorf("left are %v and %v: want a log in %s", files, entries, failed.Logs)
			}
		})
	}
}

func TestProgramThatCannotBeStarted(t *testing.T) {
	b := newBench(t, Release{Mongod: filepath.Join(t.TempDir(), "mongod"), Version: Version{8, 0, 0}})
	if _, err := Start(t.Context(), b.options); err == nil || !strings.Contains(err.Error(), "cannot start") {
		t.Errorf("got %v", err)
	}
	b.options.Release.Version = Version{5, 0, 0}
	b.options.Shape.Topology = LoadBalanced
	if _, err := Start(t.Context(), b.options); err == nil || !strings.Contains(err.Error(), "has no load balancing") {
		t.Errorf("got %v", err)
	}
	b.options.Shape.Topology = 9
	if _, err := Start(t.Context(), b.options); err == nil || !strings.Contains(err.Error(), "there is no topology 9") {
		t.Errorf("got %v", err)
	}
	b.options.Folder = filepath.Join(t.TempDir(), "nowhere")
	b.options.Shape.Topology = Standalone
	if _, err := Start(t.Context(), b.options); err == nil || !strings.Contains(err.Error(), "a temporary folder") {
		t.Errorf("got %v", err)
	}
}

// The end of the context breaks a start off at once; nothing is kept of it.
func TestStartIsInterrupted(t *testing.T) {
	for _, flaw := range []string{"does not listen", "does not answer"} {
		b := newBench(t, fake(t, flaw))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			until(t, "the server is started", func() bool { _, entries := b.left(); return len(entries) == 2 })
			cancel()
		}()
		_, err := Start(ctx, b.options)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", flaw, err)
		}
		b.nothingLeft(flaw)
	}
}

// A server whose port somebody else took in the meantime is started with
// another one.
func TestPortTaken(t *testing.T) {
	b := newBench(t, fake(t, "standalone"))
	stranger, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	asked := 0
	b.options.Ports.listen = func() (net.Listener, error) {
		if asked++; asked <= 2 { // the second time it is not tried again
			return taken{stranger}, nil
		}
		return net.Listen("tcp", net.JoinHostPort(address, "0"))
	}
	c, err := Start(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	if asked != 3 || c.Hosts()[0] == stranger.Addr().String() {
		t.Errorf("%d ports were asked for, and the server has %s", asked, c.Hosts()[0])
	}
	if err := c.Close(false); err != nil {
		t.Error(err)
	}
	b.nothingLeft("closed")
}

// taken is a listener that stays when it is closed.
type taken struct{ net.Listener }

func (taken) Close() error { return nil }

func TestPortsDiffer(t *testing.T) {
	var p Ports
	same, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = same.Close() }()
	p.listen = func() (net.Listener, error) { return taken{same}, nil }
	first, err := p.Next()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Next(); err == nil {
		t.Errorf("port %d was given twice", again)
	}
	p.free(first)
	if _, err := p.Next(); err != nil {
		t.Errorf("a port that was given back: %v", err)
	}
}

func TestServerDies(t *testing.T) {
	b := newBench(t, fake(t, "dies after a while"))
	c, err := Start(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Folder(), "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the death is noticed", func() bool { return c.Dead() != nil })
	var died *DiedError
	if err := c.Dead(); !errors.As(err, &died) || !strings.Contains(err.Error(), "mongod ended: exit status 14 (something that it could not recover from)") ||
		!strings.Contains(err.Error(), "Fatal assertion 4711") {
		t.Errorf("got %v", err)
	}
	if err := c.Close(false); err != nil {
		t.Error(err)
	}
	b.nothingLeft("closed")
}

// What a server started itself, such as a script does, goes with it.
func TestChildrenOfServersGo(t *testing.T) {
	r := fake(t, "standalone")
	pidFile := filepath.Join(t.TempDir(), "pid")
	r.Mongod = script(t, filepath.Join(t.TempDir(), "mongod"), "sleep 600 & echo $! >"+pidFile+"\n"+r.Mongod+` "$@"`)
	b := newBench(t, r)
	c, err := Start(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for _, digit := range strings.TrimSpace(string(text)) {
		pid = 10*pid + int(digit-'0')
	}
	if err := c.Close(false); err != nil {
		t.Fatal(err)
	}
	until(t, "the grandchild is gone", func() bool {
		_, err := ledger.ProcessOf(pid)
		return err != nil || syscall.Kill(pid, 0) != nil
	})
	if conn, err := net.Dial("tcp", c.Hosts()[0]); err == nil {
		_ = conn.Close()
		t.Error("the server behind the script still listens")
	}
	b.nothingLeft("closed")
}
