package acceptance

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
)

// TestServeAndRun has one process serve each topology, and another one run
// suites on it as on any cluster that is there already: nothing fails, nothing
// is skipped but for requirements, and the ports are free afterwards.
func TestServeAndRun(t *testing.T) {
	utr := build(t)
	for _, topology := range bench.Topologies() {
		t.Run(string(topology), func(t *testing.T) {
			s := serve(t, utr, string(topology))
			args := []string{"--uri", s.uri}
			if s.single != "" {
				args = append(args, "--single-uri", s.single)
			}
			runWell(t, utr, append(args, filepath.Join(bench.Own(t, "retryable-reads"), "collection-find.yml"))...)
			s.stop()
		})
	}
}

var hosts = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// served is a deployment in a process of its own.
type served struct {
	t           *testing.T
	process     *exec.Cmd
	errors      bytes.Buffer
	uri, single string
	ended       chan error
	stopped     bool
}

// serve starts one, with authentication, and reads its connection strings.
func serve(t *testing.T, utr, topology string) *served {
	t.Helper()
	file := filepath.Join(t.TempDir(), "uri")
	s := &served{t: t, process: exec.Command(utr, "serve", "--topology", topology, "--user", "tester", "--uri-file", file), ended: make(chan error, 1)}
	s.process.Env = append(os.Environ(), "UTR_PASSWORD=secret")
	s.process.Stderr = &s.errors
	out, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewScanner(out); r.Scan(); {
			lines <- r.Text()
		}
	}()
	t.Cleanup(s.stop)
	limit := time.After(testkit.Patience)
	single := ""
	for wanted := 1; wanted > 0; wanted-- {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("serve ended: %s", s.errors.String())
			}
			if rest, found := strings.CutPrefix(line, "single "); found {
				single = hosts.FindString(rest)
			} else if topology == "sharded" || topology == "load-balanced" {
				wanted++ // the line of the single mongos follows
			}
		case <-limit:
			t.Fatal("no connection string within ", testkit.Patience)
		}
	}
	go func() {
		for range lines { // none is expected
		}
		s.ended <- s.process.Wait()
	}()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.uri = strings.TrimSpace(string(text))
	if single != "" {
		all := hosts.FindAllString(s.uri, -1)
		s.single = strings.Replace(s.uri, strings.Join(all, ","), single, 1)
	}
	return s
}

// stop interrupts the process, which ends well and leaves no port behind.
func (s *served) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		s.t.Error(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("serve: %v\n%s", err, s.errors.String())
		}
	case <-time.After(testkit.Patience):
		_ = s.process.Process.Kill()
		s.t.Fatal("serve has not ended within ", testkit.Patience, " of being interrupted")
	}
	for _, address := range hosts.FindAllString(s.uri+" "+s.single, -1) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			s.t.Errorf("%s is not free: %v", address, err)
			continue
		}
		_ = l.Close()
	}
}
