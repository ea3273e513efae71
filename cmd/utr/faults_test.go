//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quickly lets the runner's own client give up early on a server that is gone.
const quickly = "serverSelectionTimeoutMS=1000"

// withOption adds an option to a connection string.
func withOption(uri, option string) string {
	if strings.Contains(uri, "?") {
		return uri + "&" + option
	}
	return uri + "?" + option
}

// blocked waits for an answer of the server for minutes, in its second test,
// after which there are more tests.
const blocked = `description: "blocked"
schemaVersion: "1.10"
createEntities:
  - client: {id: client, useMultipleMongoses: false} # the fail point is where the command goes
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll}
initialData:
  - {databaseName: db, collectionName: coll, documents: []}
tests:
  - description: "first"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: []}]
  - description: "second"
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint: {configureFailPoint: failCommand, mode: alwaysOn, data: {failCommands: [find], blockConnection: true, blockTimeMS: 90000}}
      - {name: find, object: collection, arguments: {filter: {}}, expectResult: []}
  - description: "third"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: []}]
  - description: "fourth"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: []}]
`

// all reads standard output to its end.
func (u *utr) all(t *testing.T) string {
	t.Helper()
	var lines []string
	deadline := time.After(2 * patience)
	for {
		select {
		case line, more := <-u.lines:
			if !more {
				return strings.Join(lines, "\n")
			}
			lines = append(lines, line)
		case <-deadline:
			t.Fatalf("it did not end within %s: %q\n%s", 2*patience, lines, u.said())
		}
	}
}

// A server that dies in the middle of a test breaks this test, which neither
// failed nor passed; what follows is not run, and nobody waits for long.
func TestServerKilled(t *testing.T) {
	for _, topology := range []string{"single", "replicaset", "sharded"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			server, uri := serve(t, "--topology", topology)
			host, _, _ := strings.Cut(strings.TrimPrefix(uri, "mongodb://"), "/")
			host, _, _ = strings.Cut(host, ",")
			report := filepath.Join(t.TempDir(), "r.json")
			u := start(t, "run", "-v", "--uri", withOption(uri, quickly), "--json", report, suiteFile(t, blocked))
			u.line(t, "first test", func(s string) bool { return strings.HasPrefix(s, "passed blocked: first") })
			struck(t, uri)
			begun := time.Now()
			if err := server.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			out := u.all(t)
			if code := u.exit(t); code != 3 {
				t.Errorf("exit code %d\n%s\n%s", code, out, u.said())
			}
			if took := time.Since(begun); took > patience {
				t.Errorf("it took %s", took)
			}
			for _, part := range []string{"broken", "stopped answering", host, "1 passed, 0 failed"} {
				if !strings.Contains(out, part) {
					t.Errorf("%q is missing in\n%s", part, out)
				}
			}
			text, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records(t, report) {
				want := map[string]string{"first": "passed", "second": "broken", "third": "skipped", "fourth": "skipped"}[r.Test]
				if r.Status != want {
					t.Errorf("%q %s, want %s\n%s", r.Test, r.Status, want, text)
				}
			}
		})
	}
}

// A server that takes everything and answers nothing any more, in the middle of
// a test, is as good as gone.
func TestServerHangs(t *testing.T) {
	t.Parallel()
	server, uri := serve(t, "--topology", "single")
	host := strings.TrimSuffix(strings.TrimPrefix(uri, "mongodb://"), "/")
	u := start(t, "run", "-v", "--uri", withOption(uri, "timeoutMS=1000&"+quickly), "--timeout", "3s", suiteFile(t, armed))
	ping := witness(t, uri)
	until(t, "the fail point is on", func() bool { return ping() != nil })
	begun := time.Now()
	freeze(t, server)
	out := u.all(t)
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d\n%s\n%s", code, out, u.said())
	}
	if took := time.Since(begun); took > 2*patience {
		t.Errorf("it took %s", took)
	}
	for _, part := range []string{"broken armed: second", "the deployment stopped answering", host, "1 passed, 0 failed"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
}
