//go:build unix

package utrtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Orchestra is a real mongo-orchestration with a Release of MongoDB, and a Place for runs that use it.
type Orchestra struct {
	*Place
	URL string
	t   testing.TB
	log string
}

// Orchestrate starts mongo-orchestration, or ends the test if it is not installed.
func Orchestrate(t testing.TB) *Orchestra {
	t.Helper()
	program := testkit.MongoOrchestration(t)
	alone(t)
	o := &Orchestra{Place: NewPlace(t), t: t}
	o.log = filepath.Join(o.Temp, "server.log")
	config, err := json.Marshal(map[string]any{"releases": map[string]string{"embedded": filepath.Join(Release(t),
		"bin")}})
	testkit.Check(t, err)
	file := filepath.Join(o.Temp, "releases.json")
	testkit.Check(t, os.WriteFile(file, config, 0o600))
	for range 5 { // another process can take the port first
		if o.begin(program, file) {
			return o
		}
	}
	t.Fatal("mongo-orchestration ended five times")
	return nil
}

// alone waits until no other test uses mongo-orchestration. Two instances would search
// for ports in the same order, and find the same ones.
func alone(t testing.TB) {
	t.Helper()
	const limit = 10 * testkit.Patience // a test of soak/orchestration takes minutes
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "utrtest-orchestration.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = file.Close() })
	for begun := time.Now(); syscall.Flock(int(file.Fd()),
		syscall.LOCK_EX|syscall.LOCK_NB) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > limit {
			t.Fatalf("another test has used mongo-orchestration for %s: %s is locked", limit, file.Name())
		}
	}
}

// begin starts the service and reports whether it is ready.
func (o *Orchestra) begin(program, file string) (ready bool) {
	o.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(o.t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	o.URL = "http://127.0.0.1:" + port
	service := exec.Command(program, "-f", file, "-e", "embedded", "--no-fork", "-b", "127.0.0.1", "-p", port, "start")
	service.Dir = o.Temp // for its log
	service.Env = append(os.Environ(), "TMPDIR="+o.Temp, "MONGO_ORCHESTRATION_TMP="+o.Temp, "MO_HOST=127.0.0.1")
	testkit.Check(o.t, service.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = service.Wait() }()
	o.t.Cleanup(func() {
		_ = service.Process.Signal(syscall.SIGTERM) // also ends its servers
		timer := time.AfterFunc(testkit.Patience, func() { _ = service.Process.Kill() })
		<-ended
		timer.Stop()
		if log, _ := os.ReadFile(o.log); o.t.Failed() {
			o.t.Logf("mongo-orchestration: %s", log[max(0, len(log)-3000):])
		}
	})
	testkit.Until(o.t, "mongo-orchestration is ready", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		response, err := http.Get(o.URL + "/v1/")
		if err == nil {
			_ = response.Body.Close()
			ready = response.StatusCode == http.StatusOK
		}
		return ready
	})
	return ready
}

// Call sends a request that must succeed, and returns the response.
func (o *Orchestra) Call(method, path string, body any) map[string]any {
	o.t.Helper()
	content, ok := o.Ask(method, path, body)
	if !ok {
		o.t.Fatalf("%s %s: %v", method, path, content)
	}
	return content
}

// Ask is like Call, but also reports whether the request succeeded.
func (o *Orchestra) Ask(method, path string, body any) (content map[string]any, ok bool) {
	o.t.Helper()
	text, err := json.Marshal(body)
	testkit.Check(o.t, err)
	request, err := http.NewRequest(method, o.URL+"/v1/"+path, bytes.NewReader(text))
	testkit.Check(o.t, err)
	// The service waits up to 30 s for a server.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 3 * testkit.Patience}
	response, err := client.Do(request)
	testkit.Check(o.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	if err == nil && len(text) > 0 && text[0] == '{' {
		err = json.Unmarshal(text, &content)
	}
	if err != nil {
		o.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return content, response.StatusCode < 300
}

// IDs returns the paths of all servers, replica sets and sharded clusters of the service.
func (o *Orchestra) IDs() (ids []string) {
	o.t.Helper()
	for _, kind := range []string{"servers", "replica_sets", "sharded_clusters"} {
		rows, _ := o.Call("GET", kind, nil)[kind].([]any)
		for _, row := range rows {
			fields, _ := row.(map[string]any)
			id, _ := fields["id"].(string)
			ids = append(ids, kind+"/"+id)
		}
	}
	return ids
}

// Processes returns the pids and command lines of the service's servers.
func (o *Orchestra) Processes() (lines []string) {
	o.t.Helper()
	out, err := exec.Command("ps", "-Aww", "-o", "pid=,args=").Output()
	testkit.Check(o.t, err)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--config "+o.Temp) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Begin starts utr run on clusters of the service.
func (o *Orchestra) Begin(args ...string) *Process {
	o.t.Helper()
	return o.Start(append([]string{"run", "-v", "--orchestration", o.URL}, args...)...)
}

// Vacant expects that no cluster exists and that the Place is empty.
func (o *Orchestra) Vacant() {
	o.t.Helper()
	if ids, processes := o.IDs(), o.Processes(); len(ids)+len(processes) > 0 {
		o.t.Errorf("left over: %v\n%s", ids, strings.Join(processes, "\n"))
	}
	o.Empty()
}

// Freeze stops the process with SIGSTOP and waits until it has stopped. The process
// continues at the end of the test, to be killed.
func (u *Process) Freeze() {
	u.t.Helper()
	u.Signal(syscall.SIGSTOP)
	u.t.Cleanup(func() { _ = u.Process.Signal(syscall.SIGCONT) })
	testkit.Until(u.t, "the process has stopped", func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(u.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err != nil || pid != 0 && !status.Stopped() {
			u.t.Fatalf("the process ended instead: %v", err)
		}
		return pid != 0
	})
}
