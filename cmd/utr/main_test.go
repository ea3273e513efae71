package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// The test binary is utr itself, when a test starts it as such.
func TestMain(m *testing.M) {
	if os.Getenv("UTR_TEST_AS_COMMAND") != "" {
		main()
		return
	}
	// What runs remember outside themselves is not the user's business.
	state, err := os.MkdirTemp("", "utr-test-state-")
	if err == nil {
		err = os.Setenv(ledger.EnvDir, state)
	}
	if err != nil {
		panic(err)
	}
	// Under nohup the tests ignore a hang-up, and what they start would, too: a
	// signal that is caught is the default again in a child.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	code := m.Run()
	_ = os.RemoveAll(state)
	os.Exit(code)
}

// utr is a running process. Everything that it waits for has a deadline.
type utr struct {
	*exec.Cmd
	err   diary
	lines chan string   // of standard output, as they come
	pipe  io.ReadCloser // standard output
	done  chan struct{} // closed when it has ended
}

// diary is standard error, to be read while it is written.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (u *utr) said() string { return u.err.String() }

// ended reports whether the process is over.
func (u *utr) ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

const patience = time.Minute

func start(t *testing.T, args ...string) *utr { t.Helper(); return startIn(t, nil, args...) }

// stateOf is where what a test starts remembers things: for that test alone.
func stateOf(t *testing.T) string {
	return filepath.Join(os.Getenv(ledger.EnvDir), strings.ReplaceAll(t.Name(), "/", "_"))
}

// startIn starts utr with an environment that holds more.
func startIn(t *testing.T, env []string, args ...string) *utr {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, args...)
	command.Env = append(append(os.Environ(), "UTR_TEST_AS_COMMAND=1", ledger.EnvDir+"="+stateOf(t)), env...)
	return launch(t, command)
}

// launch starts a command line that becomes utr.
func launch(t *testing.T, command *exec.Cmd) *utr {
	t.Helper()
	u := &utr{Cmd: command, lines: make(chan string, 10_000), done: make(chan struct{})}
	u.Stderr = &u.err
	pipe, err := u.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Start(); err != nil {
		t.Fatal(err)
	}
	u.pipe = pipe
	go func() {
		for scanner := bufio.NewScanner(pipe); scanner.Scan(); {
			u.lines <- scanner.Text()
		}
		close(u.lines)
		_ = u.Wait() // closes the pipe: it must be empty before
		close(u.done)
	}()
	t.Cleanup(func() { _ = u.Process.Kill() })
	return u
}

func (u *utr) line(t *testing.T, what string, fits func(string) bool) string {
	t.Helper()
	deadline := time.After(patience)
	var seen []string
	for {
		select {
		case line, more := <-u.lines:
			if !more {
				t.Fatalf("it ended before %s: %q\n%s", what, seen, u.err.String())
			}
			if fits(line) {
				return line
			}
			seen = append(seen, line)
		case <-deadline:
			t.Fatalf("no %s within %s: %q\n%s", what, patience, seen, u.err.String())
		}
	}
}

func (u *utr) exit(t *testing.T) int {
	t.Helper()
	go func() {
		for range u.lines { // so that none is in the way
		}
	}()
	select {
	case <-u.done:
		return u.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("it did not end within %s\n%s", patience, u.err.String())
		return -1
	}
}

// Either signal stops it, and its ports are free again for the next one.
func TestServeStopsCleanly(t *testing.T) {
	port := ""
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGTERM} {
		args := []string{"serve", "--topology", "sharded", "--mongoses", "1"}
		if port != "" {
			args = append(args, "--port", port)
		}
		u := start(t, args...)
		uri := u.line(t, "connection string", func(s string) bool { return strings.HasPrefix(s, "mongodb://") })
		host := strings.TrimPrefix(strings.TrimSuffix(uri, "/"), "mongodb://")
		if got := host[strings.LastIndex(host, ":")+1:]; port != "" && got != port {
			t.Errorf("it serves on %s, not on port %s", uri, port)
		} else {
			port = got
		}
		if err := u.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := u.exit(t); code != 0 {
			t.Errorf("%s: exit code %d\n%s", sig, code, u.said())
		}
	}
}

// A test that would take minutes: the first signal ends it, cleans up and
// says what ran.
const endless = `description: "endless"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
tests:
  - description: "first"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
  - description: "second"
    operations: [{name: wait, object: testRunner, arguments: {ms: 90000}}]
  - description: "third"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
`

func TestInterruptedRunSaysWhatRan(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "endless.yml")
	if err := os.WriteFile(suite, []byte(endless), 0o644); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	u := start(t, "run", "-v", "--topology", "single", suite)
	u.line(t, "end of the first test", func(s string) bool { return strings.HasPrefix(s, "passed endless: first") })
	if err := u.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	u.line(t, "what ran", func(s string) bool { return strings.HasPrefix(s, "interrupted: ") })
	u.line(t, "last line", func(s string) bool { return strings.HasPrefix(s, "1 passed, ") })
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %s", took)
	}
}

func TestHelpExits(t *testing.T) {
	for args, want := range map[string]int{"help": 0, "version": 0, "nonsense": 2, "validate nowhere.yml": 2} {
		u := start(t, strings.Fields(args)...)
		if code := u.exit(t); code != want {
			t.Errorf("utr %s: exit code %d, want %d", args, code, want)
		}
	}
}
