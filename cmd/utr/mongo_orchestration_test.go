//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// envOrchestration is the path of the program mongo-orchestration.
const envOrchestration = "UTR_MONGO_ORCHESTRATION"

// long bounds what mongo-orchestration does on a busy machine: it waits for 30 s
// for a server that it expects to answer.
const long = 3 * time.Minute

// orchestration is a real mongo-orchestration whose release is utr itself. Two
// of them would look for ports in the same order, and find the same ones: these
// tests are not parallel.
type orchestration struct {
	t    *testing.T
	url  string
	temp string // in the command lines of all its servers
	book string
}

func startOrchestration(t *testing.T) *orchestration {
	t.Helper()
	program := os.Getenv(envOrchestration)
	if program == "" {
		t.Skip("mongo-orchestration is not there: " + envOrchestration + " names it")
	}
	o := &orchestration{t: t, temp: t.TempDir(), book: t.TempDir()}
	config, err := json.Marshal(map[string]any{"releases": map[string]string{"embedded": filepath.Join(binaries(t), "bin")}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(o.temp, "releases.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	o.url = "http://127.0.0.1:" + port
	service := exec.Command(program, "-f", file, "-e", "embedded", "--no-fork", "-b", "127.0.0.1", "-p", port, "start")
	service.Dir = o.temp // its log
	service.Env = append(os.Environ(), "UTR_TEST_AS_COMMAND=1", "TMPDIR="+o.temp, "MONGO_ORCHESTRATION_TMP="+o.temp, "MO_HOST=127.0.0.1")
	var said diary
	service.Stdout, service.Stderr = &said, &said
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { defer close(over); _ = service.Wait() }()
	t.Cleanup(func() {
		_ = service.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(patience, func() { _ = service.Process.Kill() })
		<-over
		timer.Stop()
		if t.Failed() {
			t.Logf("mongo-orchestration: %s", said.String())
		}
	})
	o.until("the service answers", func() bool {
		answer, err := http.Get(o.url + "/v1/")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return o
}

func (o *orchestration) until(what string, holds func() bool) {
	o.t.Helper()
	deadline := time.Now().Add(long)
	for !holds() {
		if time.Now().After(deadline) {
			o.t.Fatalf("%s: not within %s", what, long)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// run starts a run; end waits for it, and gives its output and exit code.
func (o *orchestration) run(args ...string) (u *utr, end func() (string, int)) {
	o.t.Helper()
	u = startIn(o.t, []string{"UTR_STATE_DIR=" + o.book, "TMPDIR=" + o.temp}, append([]string{"run", "-v", "--orchestration", o.url}, args...)...)
	var said []string
	var once sync.Once
	return u, func() (string, int) {
		o.t.Helper()
		once.Do(func() {
			timer := time.AfterFunc(long, func() { _ = u.Process.Kill() })
			defer timer.Stop()
			for line := range u.lines {
				said = append(said, line)
			}
		})
		return strings.Join(said, "\n") + "\n" + u.said(), u.exit(o.t)
	}
}

// line waits for a line of a run, which a cluster has to be made for.
func (o *orchestration) line(u *utr, part string) {
	o.t.Helper()
	deadline := time.After(long)
	for {
		select {
		case line, more := <-u.lines:
			if !more {
				o.t.Fatalf("it ended before %q: %s", part, u.said())
			}
			if strings.Contains(line, part) {
				return
			}
		case <-deadline:
			o.t.Fatalf("no line with %q within %s: %s", part, long, u.said())
		}
	}
}

// ids are all servers, replica sets and sharded clusters of the service.
func (o *orchestration) ids() (ids []string) {
	o.t.Helper()
	for _, kind := range []string{"servers", "replica_sets", "sharded_clusters"} {
		answer, err := http.Get(o.url + "/v1/" + kind)
		if err != nil {
			o.t.Fatal(err)
		}
		var body map[string]json.RawMessage
		err = json.NewDecoder(answer.Body).Decode(&body)
		_ = answer.Body.Close()
		var rows []struct {
			ID string `json:"id"`
		}
		if err == nil {
			err = json.Unmarshal(body[kind], &rows)
		}
		if err != nil {
			o.t.Fatal(err)
		}
		for _, r := range rows {
			ids = append(ids, kind+"/"+r.ID)
		}
	}
	return ids
}

// processes are the mongods and mongoses that run.
func (o *orchestration) processes() (lines []string) {
	o.t.Helper()
	out, err := exec.Command("ps", "-Aww", "-o", "pid=,args=").Output()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "--config "+o.temp) {
			lines = append(lines, line)
		}
	}
	return lines
}

// nothing checks that all clusters are gone, from everywhere.
func (o *orchestration) nothing() {
	o.t.Helper()
	if ids, processes, book := o.ids(), o.processes(), entries(o.t, o.book); len(ids)+len(processes)+len(book) > 0 {
		o.t.Errorf("left are %v\n%s\n%v", ids, strings.Join(processes, "\n"), book)
	}
	if left, _ := filepath.Glob(filepath.Join(o.temp, "utr-*")); len(left) > 0 {
		o.t.Errorf("left are %v", left)
	}
}

// All kinds of clusters that the real mongo-orchestration makes of our own
// mongod and mongos: suites pass, and nothing is left.
func TestMongoOrchestration(t *testing.T) {
	o := startOrchestration(t)
	for _, r := range []struct {
		reason string
		args   []string
		kinds  int
		auth   bool
	}{
		{"all kinds", []string{"--cluster", "single", "--cluster", "replicaset", "--cluster", "sharded", "--topology", "all"}, 3, false},
		{"with passwords", []string{"--cluster", "sharded-auth"}, 1, true},
		{"with TLS, two that share the work", []string{"--cluster", "replicaset-one-auth-tls", "--clusters", "2"}, 1, true},
		{"behind a load balancer", []string{"--cluster", "load-balanced"}, 1, false},
	} {
		t.Run(r.reason, func(t *testing.T) {
			o.t = t
			report := filepath.Join(t.TempDir(), "r.json")
			u, end := o.run(append(r.args, "--events", "--json", report, "--run", "distinct", "retryable-reads")...)
			// It is asked while they are there: afterwards nothing tells.
			var secrets []string
			for secrets == nil && r.auth && !u.ended() {
				for _, id := range o.ids() {
					secrets = append(secrets, o.password(id)...)
				}
				time.Sleep(100 * time.Millisecond) // each question has the service look at its servers
			}
			said, code := end()
			if r.auth && secrets == nil {
				t.Error("the service told no password")
			}
			text, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			if code != 0 || !strings.Contains(said, " passed, 0 failed, ") || strings.Contains(said, "\n0 passed") {
				t.Errorf("exit code %d\n%s", code, said)
			}
			for _, secret := range secrets {
				if strings.Contains(said+string(text), secret) {
					t.Errorf("the password %s is out", secret)
				}
			}
			if ready := strings.Count(string(text), "passed"); ready < r.kinds {
				t.Errorf("%d passed on %d kinds", ready, r.kinds)
			}
			o.nothing()
		})
	}
}

// password asks the service for that of a cluster, if it has one.
func (o *orchestration) password(id string) []string {
	answer, err := http.Get(o.url + "/v1/" + id)
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		AuthURI string `json:"mongodb_auth_uri"`
	}
	if json.NewDecoder(answer.Body).Decode(&body) != nil || body.AuthURI == "" {
		return nil
	}
	userinfo, _, _ := strings.Cut(strings.TrimPrefix(body.AuthURI, "mongodb://"), "@")
	_, password, _ := strings.Cut(userinfo, ":")
	if len(password) < 8 {
		return nil
	}
	return []string{password}
}

// A configuration as drivers-evergreen-tools keeps them, with fixed ports and a
// release, and a cluster that is there already and stays.
func TestMongoOrchestrationFile(t *testing.T) {
	o := startOrchestration(t)
	var ports []any
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		_ = l.Close()
	}
	file := filepath.Join(t.TempDir(), "repl.json")
	text := fmt.Sprintf(`{"id": "repl0", "auth_key": "secretkey", "login": "bob", "password": "p+d 123%%", "members": [
		{"procParams": {"ipv6": true, "bind_ip": "127.0.0.1,::1", "oplogSize": 500, "port": %d}, "rsParams": {"tags": {"ordinal": "one", "dc": "ny"}}},
		{"procParams": {"ipv6": true, "bind_ip": "127.0.0.1,::1", "port": %d}, "rsParams": {"arbiterOnly": true}}]}`, ports...)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, end := o.run("--cluster", file, "--orchestration-version", "embedded", "--run", "distinct", "retryable-reads")
	if said, code := end(); code != 0 || strings.Contains(said, "p+d 123%") || strings.Contains(said, "secretkey") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	o.nothing()

	request, err := http.NewRequest(http.MethodPut, o.url+"/v1/replica_sets/mine", strings.NewReader(`{"members": [{}, {}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	_, end = o.run("--cluster", "id:mine", "--run", "distinct", "retryable-reads")
	if said, code := end(); code != 0 || !strings.Contains(said, "utr drops these collections of the deployment at 127.0.0.1:") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if ids := o.ids(); len(ids) != 3 {
		t.Errorf("the cluster and its two servers are to stay: %v", ids)
	}
}

// Whatever ends a run, and whenever, its clusters are gone when it is over, or
// after utr clean.
func TestMongoOrchestrationEnds(t *testing.T) {
	o := startOrchestration(t)
	suite := suiteFile(t, slow)
	for _, r := range []struct {
		reason string
		signal syscall.Signal
		early  bool // while the cluster is made
	}{
		{"interrupted in a test", syscall.SIGINT, false},
		{"interrupted while the cluster is made", syscall.SIGTERM, true},
		{"killed in a test", syscall.SIGKILL, false},
		{"killed while the cluster is made", syscall.SIGKILL, true},
	} {
		t.Run(r.reason, func(t *testing.T) {
			o.t = t
			u, end := o.run("--cluster", "replicaset", suite)
			if r.early {
				o.until("the cluster is being made", func() bool { return len(o.processes()) > 0 })
			} else {
				o.line(u, "first")
			}
			if err := u.Process.Signal(r.signal); err != nil {
				t.Fatal(err)
			}
			said, code := end()
			if r.signal != syscall.SIGKILL {
				if code != 3 {
					t.Errorf("exit code %d\n%s", code, said)
				}
				o.nothing()
				return
			}
			if said := o.clean(); !strings.Contains(said, "1 things were taken away, 0 are left") {
				t.Errorf("utr clean says %s", said)
			}
			o.nothing()
		})
	}
}

// clean is utr clean, which may have to wait for a cluster in the making.
func (o *orchestration) clean() string {
	o.t.Helper()
	u := startIn(o.t, []string{"UTR_STATE_DIR=" + o.book}, "clean")
	timer := time.AfterFunc(long, func() { _ = u.Process.Kill() })
	defer timer.Stop()
	var said []string
	for line := range u.lines {
		said = append(said, line)
	}
	if code := u.exit(o.t); code != 0 {
		o.t.Errorf("exit code %d", code)
	}
	return strings.Join(said, "\n") + "\n" + u.said()
}
