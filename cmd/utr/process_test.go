//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// armed sets a fail point that breaks ping for everybody, and then takes
// minutes.
const armed = `description: "armed"
schemaVersion: "1.10"
createEntities:
  - client: {id: client}
tests:
  - description: "first"
    operations: [{name: wait, object: testRunner, arguments: {ms: 1}}]
  - description: "second"
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint: {configureFailPoint: failCommand, mode: alwaysOn, data: {failCommands: [ping], errorCode: 8}}
      - {name: wait, object: testRunner, arguments: {ms: 90000}}
`

func suiteFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "suite.yml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts a deployment in a process of its own. That whole suites run on one
// through --uri, on every topology and with several mongoses, is tested in
// internal/acceptance/serve_test.go.
func serve(t *testing.T, args ...string) (u *utr, uri string) {
	t.Helper()
	u = start(t, append([]string{"serve"}, args...)...)
	return u, u.line(t, "connection string", func(s string) bool { return strings.HasPrefix(s, "mongodb://") })
}

// witness is a client that has nothing to do with the run.
func witness(t *testing.T, uri string) (ping func() error) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
	}
}

// until asks again and again until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// Whatever ends a run, the fail points that it set on a deployment of somebody
// else are off when it is over: another client sees it.
func TestInterruptTurnsFailPointsOff(t *testing.T) {
	_, uri := serve(t, "--topology", "replicaset")
	ping := witness(t, uri)
	suite := suiteFile(t, armed)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if err := ping(); err != nil {
				t.Fatalf("before the run: %v", err)
			}
			u := start(t, "run", "-v", "--uri", uri, suite)
			until(t, "the fail point is on", func() bool { return ping() != nil })
			if err := u.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			u.line(t, "what ran", func(s string) bool { return s == "interrupted: 1 of 2 tests ran" })
			u.line(t, "last line", func(s string) bool { return strings.HasPrefix(s, "1 passed, 0 failed, ") })
			if code := u.exit(t); code != 3 {
				t.Errorf("exit code %d\n%s", code, u.err.String())
			}
			if !strings.Contains(u.err.String(), "utr: interrupted: cleaning up") {
				t.Errorf("nothing told that the signal was noticed: %q", u.err.String())
			}
			if err := ping(); err != nil {
				t.Errorf("after the run the fail point is still on: %v", err)
			}
		})
	}
}

// stopped starts a run on a deployment that stops answering in the middle of a
// test.
func stopped(t *testing.T) *utr {
	t.Helper()
	server, uri := serve(t, "--topology", "single")
	ping := witness(t, uri)
	u := start(t, "run", "-v", "--uri", uri, suiteFile(t, armed))
	until(t, "the fail point is on", func() bool { return ping() != nil })
	freeze(t, server)
	return u
}

// freeze stops a process: when it returns no part of it runs any more. It goes on
// at the end of the test.
func freeze(t *testing.T, u *utr) {
	t.Helper()
	if err := u.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Process.Signal(syscall.SIGCONT) })
	until(t, "it has stopped", func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(u.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err != nil || pid != 0 && !status.Stopped() {
			t.Fatalf("it has not stopped but ended: %v", err)
		}
		return pid != 0
	})
}

// The first signal ends a run within seconds though the deployment does not
// answer any more, and tells what could not be cleaned up there.
func TestInterruptWithoutAnswer(t *testing.T) {
	u := stopped(t)
	begun := time.Now()
	if err := u.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	u.line(t, "what is left", func(s string) bool {
		return strings.Contains(s, "interrupted; clean-up: ") && strings.Contains(s, "fail point failCommand could not be turned off")
	})
	u.line(t, "last line", func(s string) bool { return strings.HasPrefix(s, "1 passed, 0 failed, ") })
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d\n%s", code, u.said())
	}
	if !strings.Contains(u.said(), "cleaning up (fail points, sessions, clients), which a deployment that does not answer can hold up for") {
		t.Errorf("nothing told what it waits for: %q", u.said())
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A second signal ends a run whose clean-up hangs, since the deployment does
// not answer any more.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	u := stopped(t)
	for range 2 {
		if err := u.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		// Two signals of one kind can become one: not before it was noticed.
		until(t, "the signal is noticed", func() bool { return u.ended() || strings.Contains(u.said(), "cleaning up") })
	}
	until(t, "the end", u.ended)
	var lines []string
	for line := range u.lines {
		lines = append(lines, line)
	}
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if text := strings.Join(lines, "\n"); strings.Contains(text, "clean-up: ") {
		t.Errorf("the clean-up was waited for:\n%s", text)
	}
}

// A reader that goes away does not kill the run in the middle of a test: it is
// cut short as by a signal.
func TestReaderGoesAway(t *testing.T) {
	var suite strings.Builder
	suite.WriteString("description: \"many\"\nschemaVersion: \"1.10\"\ntests:\n")
	for i := range 3000 {
		suite.WriteString("  - {description: \"test " + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + time.Duration(i).String() +
			"\", operations: [{name: wait, object: testRunner, arguments: {ms: 5}}]}\n")
	}
	u := start(t, "run", "-v", "--topology", "single", suiteFile(t, suite.String()))
	u.line(t, "first line", func(string) bool { return true })
	_ = u.pipe.Close()
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d, %v\n%s", code, u.ProcessState, u.said())
	}
	if !strings.Contains(u.said(), "the run was cut short") {
		t.Errorf("standard error: %q", u.said())
	}
}

// The command that a failure prints runs that very test again, as a shell
// reads it.
func TestRerunCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	descriptions := []string{
		`it's "quoted" $HOME`, "`id` $(id) \\", `(a|b)* [x]+ ^\d.$`, "aaa x 1", "tab\tand ünï ☃", "a; exit 7 # & | > <", "-v", "!history ~ *",
	}
	var suite strings.Builder
	suite.WriteString("description: \"names\"\nschemaVersion: \"1.10\"\ncreateEntities: [{client: {id: client}}]\ntests:\n")
	for _, d := range descriptions {
		name, _ := json.Marshal(d)
		suite.WriteString("  - {description: " + string(name) + ", operations: [{name: assertNumberConnectionsCheckedOut, object: testRunner, arguments: {client: client, connections: 7}}]}\n")
	}
	dir := filepath.Join(t.TempDir(), "a dir; 'with' $signs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "its suite.yml")
	if err := os.WriteFile(file, []byte(suite.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	u := start(t, "run", "--topology", "single", "--json", filepath.Join(dir, "first.json"), file)
	if code := u.exit(t); code != 1 {
		t.Fatalf("exit code %d\n%s", code, u.err.String())
	}
	first := records(t, filepath.Join(dir, "first.json"))
	if len(first) != len(descriptions) {
		t.Fatalf("%d records, want %d", len(first), len(descriptions))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "utr")); err != nil {
		t.Fatal(err)
	}
	for i, r := range first {
		if r.Test != descriptions[i] || r.Status != "failed" {
			t.Errorf("%q %s", r.Test, r.Status)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		again := exec.CommandContext(ctx, sh, "-c", r.RerunCommand+" --json again.json")
		again.Dir = bin
		again.Env = append(os.Environ(), "UTR_TEST_AS_COMMAND=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, _ := again.CombinedOutput()
		cancel()
		if code := again.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%s\nexit code %d: %s", r.RerunCommand, code, out)
			continue
		}
		var ran []string
		for _, s := range records(t, filepath.Join(bin, "again.json")) {
			if s.Status != "skipped" {
				ran = append(ran, s.Test)
			}
		}
		if len(ran) != 1 || ran[0] != r.Test {
			t.Errorf("%s\nran %q, want %q", r.RerunCommand, ran, r.Test)
		}
	}
}

type record struct{ Test, Status, RerunCommand string }

func records(t *testing.T, file string) (all []record) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// Whatever goes wrong with a real deployment, no output holds a password, as
// it is or as it is written in a connection string.
func TestSecretsStayInProcess(t *testing.T) {
	const password, wrong, keyFile = `s3/cr@t%:pw`, `wr0ng/p@ss%:pw`, `k3y/f&le%pw`
	dir := t.TempDir()
	served := startIn(t, []string{"UTR_PASSWORD=" + password}, "serve", "--topology", "single", "--user", "bob", "--uri-file", filepath.Join(dir, "uri"))
	printed := served.line(t, "connection string", func(s string) bool { return strings.HasPrefix(s, "mongodb://") })
	text, err := os.ReadFile(filepath.Join(dir, "uri"))
	if err != nil {
		t.Fatal(err)
	}
	right := strings.TrimSpace(string(text))
	if info, err := os.Stat(filepath.Join(dir, "uri")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the connection string: %v %v", info.Mode(), err)
	}
	_, rest, _ := strings.Cut(right, "@")
	hosts, _, _ := strings.Cut(rest, "/")
	userinfo := "bob:" + url.PathEscape(wrong) + "@"
	escaped := "bob:" + url.QueryEscape(wrong) + "@"
	failing := strings.Replace(suiteText, "expectResult: []", "expectResult: [{x: 1}]", 1)
	file := suiteFile(t, failing)
	for _, r := range []struct {
		reason, uri string
		code        int
	}{
		{"a test fails", right, 1},
		{"a wrong password", "mongodb://" + escaped + hosts + "/", 3},
		{"an @ that is not escaped", "mongodb://" + userinfo + hosts + "/", 2},
		{"nothing listens", "mongodb://" + escaped + "127.0.0.1:1/?serverSelectionTimeoutMS=100", 3},
		{"no such option", "mongodb://" + escaped + hosts + "/?w=-3", 2},
		{"a key file that is not there", "mongodb://" + escaped + hosts + "/?tls=true&tlsCertificateKeyFile=nowhere.pem&tlsCertificateKeyFilePassword=" + url.QueryEscape(keyFile), 2},
		{"a token", "mongodb://" + escaped + hosts + "/?authMechanism=MONGODB-AWS&serverSelectionTimeoutMS=100&authMechanismProperties=AWS_SESSION_TOKEN:" + url.QueryEscape(keyFile), 3},
		{"no host", "mongodb://" + escaped + "/", 2},
	} {
		t.Run(r.reason, func(t *testing.T) {
			records, units := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "r.xml")
			outputs := printed + served.said()
			for _, form := range []struct{ env, args []string }{
				{nil, []string{"--uri", r.uri}},
				{[]string{"UTR_URI=" + r.uri}, nil},
			} {
				u := startIn(t, form.env, append([]string{"run", "-v", "--events", "--json", records, "--junit", units, file}, form.args...)...)
				var lines []string
				for line := range u.lines {
					lines = append(lines, line)
				}
				if code := u.exit(t); code != r.code {
					t.Errorf("exit code %d, want %d: %s", code, r.code, u.said())
				}
				outputs += strings.Join(lines, "\n") + u.said()
				for _, name := range []string{records, units} {
					if text, err := os.ReadFile(name); err == nil {
						outputs += string(text)
					}
				}
			}
			for _, secret := range []string{password, wrong, keyFile} {
				quoted, _ := json.Marshal(secret)
				for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`), secret[:5]} {
					if i := strings.Index(outputs, form); i >= 0 {
						t.Errorf("%q is out: …%s…", form, outputs[max(0, i-100):min(len(outputs), i+40)])
					}
				}
			}
		})
	}
}

// suiteText reads a collection that is empty.
const suiteText = `description: "reads"
schemaVersion: "1.0"
createEntities:
  - client: {id: client, observeEvents: [commandStartedEvent]}
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll}
initialData:
  - {databaseName: db, collectionName: coll, documents: []}
tests:
  - description: "find"
    operations:
      - {name: find, object: collection, arguments: {filter: {}}, expectResult: []}
    expectEvents:
      - client: client
        events:
          - commandStartedEvent: {commandName: find, command: {find: coll}}
    outcome:
      - {collectionName: coll, databaseName: db, documents: []}
`

// A suite that expects something else fails at the line of what was changed.
func TestMutatedSuiteFailsAtItsLine(t *testing.T) {
	for _, r := range []struct{ reason, old, mutant, line string }{
		{"a field of a command", "command: {find: coll}", "command: {find: other}", ":16:"},
		{"a name of a command", "commandName: find", "commandName: count", ":16:"},
		{"one event more", "command: {find: coll}}", "command: {find: coll}}\n          - commandStartedEvent: {commandName: find}", ":17:"},
		{"a result", "expectResult: []", "expectResult: [{x: 1}]", ":12:"},
		{"a number that is no integer", "filter: {}}, expectResult: []", "filter: {}}, expectResult: 1.5", ":12:"},
		{"an error", "expectResult: []", "expectError: {errorCode: 91}", ":12:"},
		{"an outcome document", "outcome:\n      - {collectionName: coll, databaseName: db, documents: []}", "outcome:\n      - {collectionName: coll, databaseName: db, documents: [{_id: 1}]}", ":18:"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			mutant := strings.Replace(suiteText, r.old, r.mutant, 1)
			if mutant == suiteText {
				t.Fatal("nothing is changed")
			}
			file := suiteFile(t, mutant)
			u := start(t, "run", file)
			u.line(t, "place", func(s string) bool { return strings.Contains(s, file+r.line) })
			if code := u.exit(t); code != 1 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	u := start(t, "run", suiteFile(t, suiteText))
	if code := u.exit(t); code != 0 {
		t.Errorf("the suite as it was: exit code %d: %s", code, u.said())
	}
}
