package utrtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Process is a process of utr.
type Process struct {
	*exec.Cmd
	t     testing.TB
	err   testkit.Buffer // standard error
	lines chan string    // lines of standard output
	done  chan struct{}  // closed when the process has ended
}

// Start starts utr. It is killed at the end of the test.
func (p *Place) Start(args ...string) *Process {
	p.t.Helper()
	return p.Launch(exec.Command(Command(p.t), args...))
}

// Launch is Start for a command that executes utr.
func (p *Place) Launch(command *exec.Cmd) *Process {
	p.t.Helper()
	u := &Process{Cmd: command, t: p.t, lines: make(chan string, 10_000), done: make(chan struct{})}
	u.Env = append(append(os.Environ(), command.Env...), p.env...)
	u.Stderr = &u.err
	var pipe io.Reader = strings.NewReader("")
	var err error
	if u.Stdout == nil {
		pipe, err = u.StdoutPipe()
	}
	if err == nil {
		err = u.Cmd.Start()
	}
	testkit.Check(p.t, err)
	go func() {
		for scanner := bufio.NewScanner(pipe); scanner.Scan(); {
			u.lines <- scanner.Text()
		}
		close(u.lines)
		_ = u.Wait() // closes the pipe, so it must be drained first
		close(u.done)
	}()
	p.t.Cleanup(func() {
		_ = u.Process.Kill()
		u.Exit()
	})
	return u
}

// Errors returns standard error so far.
func (u *Process) Errors() string { return u.err.String() }

// WaitStderr waits until standard error contains a text.
func (u *Process) WaitStderr(part string) {
	u.t.Helper()
	u.Until(fmt.Sprintf("%q is on standard error", part), func() bool { return strings.Contains(u.Errors(), part) })
}

// Until waits until the process has made a condition true. If the process ends before that, it fails the test.
func (u *Process) Until(what string, holds func() bool) {
	u.t.Helper()
	testkit.Until(u.t, what, func() bool {
		ended := u.Ended() // before the condition is checked
		if holds() {
			return true
		}
		if ended {
			u.t.Fatalf("utr ended before %s: %s", what, u.Errors())
		}
		return false
	})
}

// Ended reports whether the process has ended.
func (u *Process) Ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// Line waits for a line of standard output that contains all parts and returns it.
func (u *Process) Line(parts ...string) string {
	u.t.Helper()
	has := func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	}
	lines, found := u.until(testkit.Patience, has)
	if !found {
		u.t.Fatalf("utr ended before it printed a line with %q: %q\n%s", parts, lines, u.Errors())
	}
	return lines[len(lines)-1]
}

// until reads lines of standard output until one matches or the process ends. limit is for each line: all lines may
// take minutes on a busy machine.
func (u *Process) until(limit time.Duration, matches func(line string) bool) (lines []string, found bool) {
	u.t.Helper()
	for {
		select {
		case line, more := <-u.lines:
			if !more {
				return lines, false
			}
			if lines = append(lines, line); matches(line) {
				return lines, true
			}
		case <-time.After(limit):
			u.t.Fatalf("utr printed nothing for %s: %q\n%s", limit, lines, u.Errors())
		}
	}
}

// Rest waits for the end of the process and returns the rest of standard output.
func (u *Process) Rest() string {
	u.t.Helper()
	lines, _ := u.until(3*testkit.Patience, func(string) bool { return false })
	return strings.Join(lines, "\n")
}

// Signal sends a signal.
func (u *Process) Signal(s os.Signal) {
	u.t.Helper()
	testkit.Check(u.t, u.Process.Signal(s))
}

// Exit waits for the end of the process and returns the exit code.
func (u *Process) Exit() int {
	u.t.Helper()
	u.Rest()
	testkit.Receive(u.t, "the end of the process", u.done)
	return u.ProcessState.ExitCode()
}

// Result is the exit code and output of a process.
type Result struct {
	t        testing.TB
	args     []string
	Code     int
	Out, Err string
}

// End waits for the end of the process.
func (u *Process) End() Result {
	u.t.Helper()
	out := u.Rest()
	return Result{u.t, u.Args, u.Exit(), out, u.Errors()}
}

// Run runs utr and waits for it to end.
func (p *Place) Run(args ...string) Result {
	p.t.Helper()
	return p.Start(args...).End()
}

// RunTo is Run with standard output to a file.
func (p *Place) RunTo(out *os.File, args ...string) Result {
	p.t.Helper()
	command := exec.Command(Command(p.t), args...)
	command.Stdout = out
	return p.Launch(command).End()
}

// All returns standard output and standard error.
func (r Result) All() string { return r.Out + "\n" + r.Err }

// Want expects an exit code, and texts in the output.
func (r Result) Want(code int, parts ...string) Result {
	r.t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.All(), part) {
			r.t.Errorf("%q: %q is missing from:\n%s", r.args, part, r.All())
		}
	}
	if r.Code != code {
		r.t.Errorf("%q: exit code %d, want %d:\n%s", r.args, r.Code, code, r.All())
	}
	return r
}

// Server is a process of utr serve.
type Server struct {
	*Process
	// URI and Single are connection strings with passwords. Single has one mongos.
	URI, Single string
	// CAFile is the certificate that clients must trust, with --tls.
	CAFile string
	// Printed contains the connection strings from standard output.
	Printed string
}

// Serve starts utr serve and waits until it is ready.
func (p *Place) Serve(args ...string) *Server {
	p.t.Helper()
	dir := p.t.TempDir()
	file := filepath.Join(dir, "uri")
	s := &Server{}
	args = append([]string{"serve", "--uri-file", file}, args...)
	if slices.Contains(args, "--tls") {
		s.CAFile = filepath.Join(dir, "ca.pem")
		args = append(args, "--ca-file", s.CAFile)
	}
	s.Process = p.Start(args...)
	s.WaitStderr("; interrupt to stop\n")
	text := testkit.Read(p.t, file)
	s.URI = strings.TrimSpace(text)
	s.Single = s.URI
	s.Printed = s.Line("mongodb://")
	if strings.Contains(s.URI, "loadBalanced=true") || strings.Contains(s.URI, ",") &&
		!strings.Contains(s.URI, "replicaSet=") {
		single := s.Line("single ")
		s.Printed += "\n" + single
		s.Single = strings.TrimPrefix(single, "single ")
		if user, _, found := strings.Cut(s.URI, "@"); found {
			_, hosts, _ := strings.Cut(s.Single, "@")
			s.Single = user + "@" + hosts
		}
	}
	return s
}

// Hosts returns the addresses in a connection string.
func Hosts(uri string) []string {
	rest := strings.TrimPrefix(uri, "mongodb://")
	rest = rest[strings.LastIndex(rest, "@")+1:]
	hosts, _, _ := strings.Cut(rest, "/")
	return strings.Split(hosts, ",")
}
