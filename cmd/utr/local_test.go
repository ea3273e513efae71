//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// binaries gives a release: a mongod and a mongos that are the embedded
// deployment in processes of its own.
func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	u := start(t, "release", dir)
	if code := u.exit(t); code != 0 {
		t.Fatalf("utr release: exit code %d\n%s", code, u.said())
	}
	return dir
}

// place is where a run may leave something.
type place struct {
	t          *testing.T
	temp, book string
}

func newPlace(t *testing.T) *place {
	return &place{t: t, temp: t.TempDir(), book: t.TempDir()}
}

func (p *place) env() []string { return []string{"TMPDIR=" + p.temp, "UTR_STATE_DIR=" + p.book} }

// entries are those of the ledger that hold a text, as they stand there.
func (p *place) entries(text string) (out []string) {
	p.t.Helper()
	for _, entry := range entries(p.t, p.book) {
		if strings.Contains(entry, text) {
			out = append(out, entry)
		}
	}
	return out
}

func (p *place) folders() []string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.temp, "utr-*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// servers are the processes that the ledger remembers.
func (p *place) servers() (pids []int) {
	p.t.Helper()
	for _, text := range p.entries(`"kind": "process"`) {
		var record struct {
			Entry struct {
				Process struct {
					PID int `json:"pid"`
				} `json:"process"`
			} `json:"entry"`
		}
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			p.t.Fatal(err)
		}
		pids = append(pids, record.Entry.Process.PID)
	}
	return pids
}

// gone reports whether none of some processes is there, or just as one that
// nobody asked about yet.
func gone(t *testing.T, pids []int) bool {
	t.Helper()
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			return false
		}
	}
	return true
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// nothing is left: no process, no folder, no entry.
func (p *place) nothing(pids []int) {
	p.t.Helper()
	if !gone(p.t, pids) {
		p.t.Errorf("of the processes %v some are there", pids)
	}
	if left := p.folders(); len(left) > 0 {
		p.t.Errorf("folders are left: %v", left)
	}
	if left := p.entries(""); len(left) > 0 {
		p.t.Errorf("the ledger has %v", left)
	}
}

// midway starts a run on binaries, and gives the processes that it has started
// when it is in the middle of a test.
func midway(t *testing.T, p *place, args ...string) (u *utr, servers []int) {
	t.Helper()
	args = append([]string{"run", "-v", "--auth", "off"}, args...)
	u = startIn(t, p.env(), append(args, suiteFile(t, endless))...)
	u.line(t, "end of the first test", func(s string) bool { return strings.HasPrefix(s, "passed endless: first") })
	if servers = p.servers(); len(servers) == 0 {
		t.Fatal("the ledger remembers no process")
	}
	return u, servers
}

// All topologies, with several workers; nothing is left, and nothing is said.
func TestLocalRunLeavesNothing(t *testing.T) {
	p := newPlace(t)
	suite := strings.ReplaceAll(endless, "90000", "1")
	u := startIn(t, p.env(), "run", "--local", binaries(t), "--topology", "all", "--auth", "off", "--jobs", "2", "--members", "2", "--mongoses", "1", suiteFile(t, suite))
	u.line(t, "last line", func(s string) bool { return s == "12 passed, 0 failed, 0 skipped" })
	if code := u.exit(t); code != 0 || u.said() != "" {
		t.Errorf("exit code %d\n%s", code, u.said())
	}
	p.nothing(nil)
}

// A signal in the middle of a test: servers, folders and ports are gone when
// the process is.
func TestInterruptedLocalRunLeavesNothing(t *testing.T) {
	release := binaries(t)
	for _, row := range []struct {
		sig      syscall.Signal
		topology string
		servers  int
	}{{syscall.SIGINT, "replicaset", 3}, {syscall.SIGTERM, "sharded", 4}, {syscall.SIGHUP, "load-balanced", 4}} {
		t.Run(row.sig.String(), func(t *testing.T) {
			p := newPlace(t)
			u, servers := midway(t, p, "--local", release, "--topology", row.topology)
			if len(servers) != row.servers {
				t.Errorf("%d servers, want %d", len(servers), row.servers)
			}
			ports := p.ports()
			if err := u.Process.Signal(row.sig); err != nil {
				t.Fatal(err)
			}
			u.line(t, "what ran", func(s string) bool { return strings.HasPrefix(s, "interrupted: ") })
			if code := u.exit(t); code != 3 {
				t.Errorf("exit code %d\n%s", code, u.said())
			}
			p.nothing(servers)
			for _, port := range ports {
				if listening(port) {
					t.Errorf("something listens on port %s", port)
				}
			}
		})
	}
}

// A signal while a cluster starts, which never comes up: for the first test, or
// to be asked for its parameters before that, beside one that is up.
func TestInterruptedStartLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo db version v8.0.4; exit; }\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(dir, "mongod"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	halfway := binaries(t) // whose mongos never comes up
	if err := os.WriteFile(filepath.Join(halfway, "bin", "mongos"), []byte(strings.Replace(script, "db version v8.0.4", "mongos version v8.0.4", 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	asking := strings.Replace(endless, "tests:\n", "runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n", 1)
	for _, row := range []struct {
		reason, release, topology, suite string
		servers                          int
	}{
		{"for a test", dir, "single", endless, 1},
		{"to be asked", halfway, "all", asking, 6},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := newPlace(t)
			u := startIn(t, p.env(), "run", "--local", row.release, "--topology", row.topology, suiteFile(t, row.suite))
			until(t, "the servers are started", func() bool { return len(p.servers()) == row.servers })
			servers := p.servers()
			if err := u.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := u.exit(t); code != 3 {
				t.Errorf("exit code %d\n%s", code, u.said())
			}
			p.nothing(servers)
		})
	}
}

// After SIGKILL nobody cleans up: on Linux servers die with the run, and utr
// clean takes away the rest, twice if need be.
func TestCleanAfterKilledLocalRun(t *testing.T) {
	p := newPlace(t)
	u, servers := midway(t, p, "--local", binaries(t), "--topology", "replicaset")
	if err := u.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end", u.ended)
	if runtime.GOOS == "linux" {
		until(t, "the servers are gone, too", func() bool { return gone(t, servers) })
	}
	if len(p.folders()) != 1 {
		t.Errorf("folders that are left: %v", p.folders())
	}
	for range 2 {
		clean := startIn(t, p.env(), "clean")
		if code := clean.exit(t); code != 0 {
			t.Errorf("utr clean: exit code %d\n%s", code, clean.said())
		}
	}
	p.nothing(servers)
}

// Embedded deployments end with the process; the certificates that clients
// trust are files, which do not.
func TestCleanAfterKilledEmbeddedRun(t *testing.T) {
	p := newPlace(t)
	u := startIn(t, p.env(), "run", "-v", "--tls", "--topology", "single", "--auth", "off", suiteFile(t, endless))
	u.line(t, "end of the first test", func(s string) bool { return strings.HasPrefix(s, "passed endless: first") })
	if err := u.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end", u.ended)
	if len(p.folders()) != 1 {
		t.Errorf("folders that are left: %v", p.folders())
	}
	clean := startIn(t, p.env(), "clean")
	if code := clean.exit(t); code != 0 {
		t.Errorf("utr clean: exit code %d\n%s", code, clean.said())
	}
	p.nothing(nil)
}

// A server that is killed in the middle of a run: the run says so, goes on with
// a new one, and keeps the logs.
func TestLocalServerKilled(t *testing.T) {
	suite := `description: "three"
schemaVersion: "1.10"
createEntities:
  - client: {id: client, uriOptions: {serverSelectionTimeoutMS: 500}}
  - database: {id: database, client: client, databaseName: db}
tests:
  - description: "first"
    operations: [{name: runCommand, object: database, arguments: {commandName: ping, command: {ping: 1}}}]
  - description: "second"
    operations:
      - {name: wait, object: testRunner, arguments: {ms: 1500}}
      - {name: runCommand, object: database, arguments: {commandName: ping, command: {ping: 1}}}
  - description: "third"
    operations: [{name: runCommand, object: database, arguments: {commandName: ping, command: {ping: 1}}}]
`
	p := newPlace(t)
	u := startIn(t, p.env(), "run", "-v", "--local", binaries(t), "--topology", "single", "--auth", "off",
		"--uri-option", "appName=x", suiteFile(t, suite))
	u.line(t, "end of the first test", func(s string) bool { return strings.HasPrefix(s, "passed three: first") })
	servers := p.servers()
	if err := syscall.Kill(servers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.line(t, "why the second test broke", func(s string) bool {
		return strings.Contains(s, "the deployment stopped answering: mongod ended: signal: killed")
	})
	u.line(t, "the third test", func(s string) bool { return strings.HasPrefix(s, "passed three: third") })
	if code := u.exit(t); code == 0 {
		t.Error("exit code 0")
	}
	for _, want := range []string{"mongod ended: signal: killed", "the logs of the servers are in " + p.temp} {
		if !strings.Contains(u.said(), want) {
			t.Errorf("nothing told %q:\n%s", want, u.said())
		}
	}
	if left := p.entries(""); len(left) > 0 {
		t.Errorf("the ledger has %v", left)
	}
	logs, _ := filepath.Glob(filepath.Join(p.temp, "utr-*", "*"))
	for _, l := range logs {
		if filepath.Ext(l) != ".log" {
			t.Errorf("%s is left", l)
		}
	}
	if len(logs) != 2 {
		t.Errorf("the logs are %v: want one of each cluster", logs)
	}
}

// A release that does not start breaks its tests, quickly, and says why.
func TestLocalReleaseThatFails(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo db version v8.0.4; exit; }\necho \"error: unknown option $1\" >&2\nexit 2\n"
	if err := os.WriteFile(filepath.Join(dir, "mongod"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	u := startIn(t, p.env(), "run", "--local", dir, "--topology", "single", "--auth", "off", suiteFile(t, endless))
	u.line(t, "the verdict", func(s string) bool {
		return strings.Contains(s, "mongod ended: exit status 2 (an option is wrong, or does not go with another one); the last that it said:")
	})
	u.line(t, "what the server said", func(s string) bool { return strings.Contains(s, "error: unknown option --port") })
	u.line(t, "where its log is", func(s string) bool { return strings.Contains(s, "the logs of the servers are in "+p.temp) })
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d\n%s", code, u.said())
	}
	if entries := p.entries(""); len(entries) > 0 {
		t.Errorf("the ledger has %v", entries)
	}
}

// port is what a server says that it listens on.
var port = regexp.MustCompile(`"Waiting for connections".*"port":(\d+)`)

// ports are those that the servers of the runs in this place listen on.
func (p *place) ports() (out []string) {
	p.t.Helper()
	logs, _ := filepath.Glob(filepath.Join(p.temp, "utr-*", "*.log"))
	for _, l := range logs {
		text, err := os.ReadFile(l)
		if err != nil {
			p.t.Fatal(err)
		}
		found := port.FindStringSubmatch(string(text))
		if found == nil {
			p.t.Fatalf("no port in %s:\n%s", l, text)
		}
		out = append(out, found[1])
	}
	return out
}

// listening reports whether somebody takes connections on a port.
func listening(port string) bool {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
