//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// A server that dies in the middle of a test breaks this test, which neither
// failed nor passed; what follows is not run.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	p := utrtest.NewPlace(t)
	server := p.Serve("--topology", "replicaset")
	hosts := utrtest.Hosts(server.URI)
	report := filepath.Join(t.TempDir(), "r.json")
	u := p.Start("run", "-v", "--uri", server.URI+"&serverSelectionTimeoutMS=300", "--json", report, suiteFile(t, blocked))
	u.Line("passed blocked: first")
	struck(t, hosts...)
	server.Signal(syscall.SIGKILL)
	u.End().Want(3, "broken", "stopped answering", hosts[0], "1 passed, 0 failed")
	if got := fmt.Sprint(statuses(t, report)); got != "[first passed second broken third skipped]" {
		t.Error(got)
	}
}

// statuses are the tests of a report, each with its status.
func statuses(t *testing.T, report string) (all []string) {
	t.Helper()
	for _, r := range records(t, report) {
		all = append(all, r.Test, r.Status)
	}
	return all
}

// listens is what a server says of its port.
var listens = regexp.MustCompile(`"Waiting for connections".*"port":(\d+)`)

// A server of --local that is killed in the middle of a test: the run says so,
// goes on with a new one, and keeps the logs.
func TestLocalServerKilled(t *testing.T) {
	t.Parallel()
	p := utrtest.NewPlace(t)
	u := p.Start("run", "-v", "--local", release(t), "--topology", "single", "--auth", "off", "--uri-option", "serverSelectionTimeoutMS=300", suiteFile(t, blocked))
	u.Line("passed blocked: first")
	logs, _ := filepath.Glob(filepath.Join(p.Temp, "utr-*", "*.log"))
	text, err := os.ReadFile(strings.Join(logs, ""))
	if err != nil {
		t.Fatal(err)
	}
	struck(t, "127.0.0.1:"+listens.FindStringSubmatch(string(text))[1])
	if err := syscall.Kill(servers(t, p)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.Line("the deployment stopped answering: mongod ended: signal: killed")
	u.Line("passed blocked: third")
	u.End().Want(3, "mongod ended: signal: killed", "the logs of the servers are in "+p.Temp)
	if left := p.Entries(""); len(left) > 0 {
		t.Errorf("the ledger has %v", left)
	}
	if kept, _ := filepath.Glob(filepath.Join(p.Temp, "utr-*", "*")); len(kept) != 2 || filepath.Ext(kept[0])+filepath.Ext(kept[1]) != ".log.log" {
		t.Errorf("these files are kept: %v, want one log of each cluster", kept)
	}
}

// Of several clusters that are not ours, one stops answering: its test is
// broken, and the other cluster goes on with the rest.
func TestOneOfSeveralClustersDies(t *testing.T) {
	t.Parallel()
	s := twin.Start(t)
	s.Add(t, "servers", "a", embedded.Options{})
	s.Add(t, "servers", "b", embedded.Options{})
	answer, err := http.Get(s.URL + "/servers/a")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var used struct {
		URI string `json:"mongodb_uri"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&used); err != nil {
		t.Fatal(err)
	}
	u := utrtest.NewPlace(t).Start("run", "-v", "--jobs", "1", "--uri-option", "serverSelectionTimeoutMS=300",
		"--orchestration", s.URL, "--cluster", "id:a", "--cluster", "id:b", suiteFile(t, blocked))
	u.Line("passed blocked: first")
	struck(t, utrtest.Hosts(used.URI)...)
	s.Kill("servers/a")
	u.Line("broken blocked: second")
	u.Line("passed blocked: third")
	u.End().Want(3)
	if left := s.Clusters(); len(left) != 2 {
		t.Errorf("%v are left of two that are not ours", left)
	}
}

// A quota that is used up in the middle of the reports: the run goes on to its
// end, names each report that it could not write, and keeps the earlier ones.
func TestQuotaForReports(t *testing.T) {
	var suite strings.Builder
	suite.WriteString("description: many\nschemaVersion: \"1.10\"\ntests:\n")
	for i := range 300 { // the reports need some room
		fmt.Fprintf(&suite, "  - {description: \"test %d\", operations: []}\n", i)
	}
	dir := t.TempDir()
	earlier, fresh, small := filepath.Join(dir, "earlier.json"), filepath.Join(dir, "fresh.tap"), filepath.Join(dir, "small.svg")
	if err := os.WriteFile(earlier, []byte("earlier"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Nothing that the process writes may be larger than 8 blocks of 512 bytes.
	end := utrtest.NewPlace(t).Launch(exec.Command("sh", "-c", `ulimit -f 8 || exit 99; exec "$@"`, "sh", utrtest.Command(t),
		"run", "--topology", "single", "--json", earlier, "--tap", fresh, "--badge", small, suiteFile(t, suite.String()))).End()
	if end.Code == 99 {
		t.Skip("not proved: this shell cannot limit the size of files")
	}
	end.Want(3,
		"writing the report to "+earlier+": write "+earlier+".partial: file too large; the earlier report there is as it was",
		"writing the report to "+fresh+": write "+fresh+".partial: file too large")
	if !strings.HasSuffix(end.Out, "300 passed, 0 failed, 0 skipped") {
		t.Errorf("the text is not whole: %q", end.Out)
	}
	if text, err := os.ReadFile(earlier); err != nil || string(text) != "earlier" {
		t.Errorf("the earlier report: %v %q", err, text)
	}
	if text, err := os.ReadFile(small); err != nil || !strings.HasSuffix(strings.TrimSpace(string(text)), "</svg>") {
		t.Errorf("the report that was small enough: %v %q", err, text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// The command that a failure prints runs that very test again, as a shell
// reads it.
func TestRerunCommand(t *testing.T) {
	t.Parallel()
	descriptions := []string{
		`it's "quoted" $HOME`, "`id` $(id) \\", `(a|b)* [x]+ ^\d.$`, "a; exit 7 # & | > <", "-v",
	}
	var suite strings.Builder
	suite.WriteString("description: names\nschemaVersion: \"1.10\"\ncreateEntities: [{client: {id: client}}]\ntests:\n")
	for _, d := range descriptions {
		name, _ := json.Marshal(d)
		fmt.Fprintf(&suite, "  - description: %s\n    operations:\n", name)
		suite.WriteString("      - {name: assertNumberConnectionsCheckedOut, object: testRunner, arguments: {client: client, connections: 7}}\n")
	}
	dir := filepath.Join(t.TempDir(), "a dir; 'with' $signs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, report := filepath.Join(dir, "its suite.yml"), filepath.Join(dir, "first.json")
	if err := os.WriteFile(file, []byte(suite.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(utrtest.Command(t), filepath.Join(bin, "utr")); err != nil {
		t.Fatal(err)
	}
	p := utrtest.NewPlace(t, "PATH="+bin+":"+os.Getenv("PATH"))
	p.Run("run", "--topology", "single", "--json", report, file).Want(1)
	first := records(t, report)
	if len(first) != len(descriptions) {
		t.Fatalf("%d records, want %d", len(first), len(descriptions))
	}
	for i, r := range first {
		again := filepath.Join(bin, "again.json")
		p.Launch(exec.Command("sh", "-c", r.RerunCommand+" --json "+again)).End().Want(1)
		var ran []string
		for _, s := range records(t, again) {
			if s.Status != "skipped" {
				ran = append(ran, s.Test, s.Status)
			}
		}
		if got := fmt.Sprintf("%q", ran); got != fmt.Sprintf("%q", []string{descriptions[i], "failed"}) {
			t.Errorf("%s\nran %s", r.RerunCommand, got)
		}
	}
}
