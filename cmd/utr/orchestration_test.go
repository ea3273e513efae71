//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/deployment/orchestration/twin"
	"github.com/unified-test-runner/utr/embedded"
)

// slow is a suite whose second test takes minutes: with --jobs 1, or the first
// may have to wait for the second.
const slow = `description: "slow"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
tests:
  - description: "first"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
  - description: "second"
    operations: [{name: wait, object: testRunner, arguments: {ms: 90000}}]
`

// entries gives the ledger's files, without one that is going just now.
func entries(t *testing.T, state string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "ledger", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			t.Fatal(err)
		default:
			texts = append(texts, string(text))
		}
	}
	return texts
}

// clean runs utr clean and gives what it says.
func clean(t *testing.T, code int, args ...string) string {
	t.Helper()
	u := start(t, append([]string{"clean"}, args...)...)
	var said []string
	for line := range u.lines {
		said = append(said, line)
	}
	if got := u.exit(t); got != code {
		t.Errorf("utr clean %v: exit code %d, want %d: %s\n%s", args, got, code, strings.Join(said, "\n"), u.said())
	}
	return strings.Join(said, "\n") + "\n" + u.said()
}

// A run on several clusters of each kind leaves none of them, and none of its
// outputs has their passwords.
func TestOrchestrationEndToEnd(t *testing.T) {
	s := twin.Start(t)
	dir := t.TempDir()
	report, page := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html")
	configuration := filepath.Join(dir, "mine.json")
	if err := os.WriteFile(configuration, []byte(`{"id": "mine", "login": "ann", "password": "p@ss/w:rd%", "auth_key": "s3cretkey", "members": [{}, {}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	failing := strings.Replace(suiteText, "expectResult: []", "expectResult: [{x: 1}]", 1)
	u := startIn(t, []string{"UTR_URI=mongodb://127.0.0.1:1"}, "run", "-v", "--events", "--topology", "all", "--orchestration", s.URL,
		"--cluster", "sharded-auth", "--cluster", configuration, "--cluster", "single", "--clusters", "2", "--json", report, "--html", page,
		"--uri-option", "compressors=zlib", suiteFile(t, suiteText), suiteFile(t, failing))
	var said []string
	for line := range u.lines {
		said = append(said, line)
	}
	if code := u.exit(t); code != 1 {
		t.Errorf("exit code %d\n%s\n%s", code, strings.Join(said, "\n"), u.said())
	}
	if len(said) == 0 || !strings.HasPrefix(said[len(said)-1], "3 passed, 3 failed, 0 skipped") {
		t.Errorf("a test and one that fails, on three kinds:\n%s", strings.Join(said, "\n"))
	}
	if left := s.Clusters(); len(left) != 0 || len(entries(t, stateOf(t))) != 0 {
		t.Errorf("%v and %v are left", left, entries(t, stateOf(t)))
	}
	outputs := strings.Join(said, "\n") + u.said()
	for _, name := range []string{report, page} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		outputs += string(text)
	}
	secrets := []string{"p@ss/w:rd%", "p%40ss%2Fw%3Ard%25", "s3cretkey"}
	for _, body := range s.Bodies() {
		for _, key := range []string{"password", "auth_key"} {
			if secret, _ := body[key].(string); secret != "" {
				secrets = append(secrets, secret)
			}
		}
	}
	if len(secrets) < 7 {
		t.Errorf("only %d secrets: the clusters had no passwords", len(secrets))
	}
	for _, secret := range secrets {
		if i := strings.Index(outputs, secret); i >= 0 {
			t.Errorf("%q is out: …%s…", secret, outputs[max(0, i-100):min(len(outputs), i+40)])
		}
	}
	for _, r := range records(t, report) {
		if r.Status == "failed" && (!strings.Contains(r.RerunCommand, "--orchestration "+s.URL) || !strings.Contains(r.RerunCommand, "--cluster sharded-auth") ||
			!strings.Contains(r.RerunCommand, "--topology ") || strings.Contains(r.RerunCommand, "--server-version")) {
			t.Errorf("it is run again by %s", r.RerunCommand)
		}
	}
}

// Whatever ends a run, its clusters are gone when it is over.
func TestOrchestrationInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			s := twin.Start(t)
			u := start(t, "run", "-v", "--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth", suiteFile(t, slow))
			u.line(t, "the first test", func(s string) bool { return strings.Contains(s, "first") })
			if err := u.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			u.line(t, "last line", func(s string) bool { return strings.HasPrefix(s, "1 passed, 0 failed, ") })
			if code := u.exit(t); code != 3 {
				t.Errorf("exit code %d\n%s", code, u.said())
			}
			if left := s.Clusters(); len(left) != 0 || len(entries(t, stateOf(t))) != 0 {
				t.Errorf("%v and %v are left", left, entries(t, stateOf(t)))
			}
		})
	}
}

// What a run leaves that was killed, utr clean takes away, and nothing else.
func TestKilledAndCleaned(t *testing.T) {
	s := twin.Start(t)
	s.Add(t, "servers", "somebody-elses", embedded.Options{})
	begin := func() *utr {
		u := start(t, "run", "-v", "--jobs", "1", "--orchestration", s.URL, "--cluster", "single", "--cluster", "replicaset-auth", suiteFile(t, slow))
		u.line(t, "the first test", func(s string) bool { return strings.Contains(s, "first") })
		return u
	}
	killed, living := begin(), begin()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.exit(t)
	texts := strings.Join(entries(t, stateOf(t)), "\n")
	for _, body := range s.Bodies() {
		if secret, _ := body["password"].(string); secret != "" && strings.Contains(texts, secret) {
			t.Errorf("a password is in the ledger: %s", texts)
		}
	}
	if n := len(s.Clusters()); n != 5 {
		t.Fatalf("there are %v", s.Clusters())
	}
	if said := clean(t, 0, "--dry-run"); !strings.Contains(said, "2 things are left") || len(s.Clusters()) != 5 {
		t.Errorf("a dry run says %s, and leaves %v", said, s.Clusters())
	}
	if said := clean(t, 0); !strings.Contains(said, "2 things were taken away, 0 are left") {
		t.Errorf("it says %s", said)
	}
	if n := len(s.Clusters()); n != 3 || len(entries(t, stateOf(t))) != 2 {
		t.Errorf("there are %v, and in the ledger %v", s.Clusters(), entries(t, stateOf(t)))
	}
	if said := clean(t, 0); !strings.Contains(said, "nothing was left") {
		t.Errorf("once more: %s", said)
	}
	if err := living.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	living.exit(t)
	if left := s.Clusters(); !slices.Equal(left, []string{"servers/somebody-elses"}) {
		t.Errorf("left are %v", left)
	}
}

// Of several clusters that are not ours, one stops answering: its test is
// broken, and the others go on with the rest.
func TestOneOfSeveralClustersDies(t *testing.T) {
	s := twin.Start(t)
	for _, id := range []string{"a", "b"} {
		s.Add(t, "servers", id, embedded.Options{})
	}
	suite := suiteFile(t, `description: "several"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
  - database: {id: database, client: client, databaseName: db}
tests:
  - description: "first"
    operations:
      - {name: wait, object: testRunner, arguments: {ms: 1}}
  - description: "second"
    operations:
      - {name: wait, object: testRunner, arguments: {ms: 3000}}
      - {name: runCommand, object: database, arguments: {commandName: ping, command: {ping: 1}}}
  - description: "third"
    operations:
      - {name: runCommand, object: database, arguments: {commandName: ping, command: {ping: 1}}}
`)
	u := start(t, "run", "-v", "--jobs", "1", "--uri-option", "serverSelectionTimeoutMS=2000",
		"--orchestration", s.URL, "--cluster", "id:a", "--cluster", "id:b", suite)
	u.line(t, "the first test", func(s string) bool { return strings.Contains(s, "first") })
	s.Kill("servers/a")
	u.line(t, "the second test", func(s string) bool { return strings.HasPrefix(s, "broken") && strings.Contains(s, "second") })
	u.line(t, "the third test", func(s string) bool { return strings.HasPrefix(s, "passed") && strings.Contains(s, "third") })
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d\n%s", code, u.said())
	}
	if left := s.Clusters(); len(left) != 2 {
		t.Errorf("%v are left of two that are not ours", left)
	}
}

// A service that is gone is said to be, each time, until it is forgotten.
func TestCleanWithoutTheService(t *testing.T) {
	s := twin.Start(t)
	u := start(t, "run", "-v", "--orchestration", s.URL, "--cluster", "single", suiteFile(t, slow))
	u.line(t, "the first test", func(s string) bool { return strings.Contains(s, "first") })
	if err := u.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	u.exit(t)
	s.Vanish()
	for range 2 {
		said := clean(t, 3)
		for _, part := range []string{" is left: orchestration: GET " + s.URL + "/: ", "connection refused", "utr clean --forget", "0 things were taken away, 1 are left"} {
			if !strings.Contains(said, part) {
				t.Errorf("%q is not said: %s", part, said)
			}
		}
	}
	if said := clean(t, 0, "--forget"); !strings.Contains(said, "off the ledger: cluster utr-single-") {
		t.Errorf("it says %s", said)
	}
	if said := clean(t, 0); !strings.Contains(said, "nothing was left") {
		t.Errorf("once more: %s", said)
	}
}

// With --uri, what a killed run left in a deployment of somebody else is gone:
// the fail point and the lock. While another run uses it nothing is touched.
func TestCleanDeployment(t *testing.T) {
	_, uri := serve(t, "--topology", "replicaset")
	ping := witness(t, uri)
	run := start(t, "run", "-v", "--uri", uri, suiteFile(t, armed))
	until(t, "the fail point is on", func() bool { return ping() != nil })
	if said := clean(t, 3, "--uri", uri); !strings.Contains(said, "it is in use by a run on host ") || ping() == nil {
		t.Errorf("a run that is there is not left alone: %s", said)
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	run.exit(t)
	said := clean(t, 0, "--uri", uri)
	if !strings.Contains(said, "turned off: failCommand was on at ") || !strings.Contains(said, "lock") {
		t.Errorf("it says %s", said)
	}
	if err := ping(); err != nil {
		t.Errorf("the fail point is on: %v", err)
	}
	if said := clean(t, 0, "--uri", uri); !strings.Contains(said, "nothing was left") {
		t.Errorf("once more: %s", said)
	}
}
