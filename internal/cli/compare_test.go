package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// differing is a suite that the Go driver passes as the reference does, but
// for an error that only one of them retries: see docs/deviations.md.
const differing = `description: deviating
schemaVersion: "1.4"
runOnRequirements: [{minServerVersion: "4.4", topologies: [replicaset]}]
createEntities:
  - client: {id: client, useMultipleMongoses: false, observeEvents: [commandStartedEvent]}
  - database: {id: database, client: client, databaseName: compare}
  - collection: {id: collection, database: database, collectionName: coll}
initialData: [{databaseName: compare, collectionName: coll, documents: [{_id: 1}]}]
tests:
  - description: the same on both
    operations: [{name: find, object: collection, arguments: {filter: {}}}]
  - description: not the same
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint:
            configureFailPoint: failCommand
            mode: {times: 1}
            data: {failCommands: [insert], errorCode: 50, errorLabels: [RetryableWriteError]}
      - {name: insertOne, object: collection, arguments: {document: {_id: 2}}}
`

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	file, known, stale := filepath.Join(dir, "differing.yml"), filepath.Join(dir, "known.txt"), filepath.Join(dir, "stale.txt")
	write(t, file, differing)
	write(t, known, "not the same$ # 2.9.3: not retried\n")
	write(t, stale, "the same on both$ # 2.9.3: no longer so\nnot the same$ # 2.9.3: not retried\n")
	records := filepath.Join(dir, "records.json")
	for _, row := range []struct {
		why  string
		args []string
		code int
		says []string // in standard output and error
	}{
		{"a difference is shown with both logs, and fails", []string{file, "--json", records}, 1,
			[]string{"differing.yml:12:5: not the same (replicaset", "reference: passed", "driver: failed", "- send insert on compare", "1 same, 1 different, 0 explained, 0 not compared"}},
		{"a known failure is none", []string{file, "--known-failing", known}, 0, []string{"1 same, 0 different, 1 explained, 0 not compared"}},
		{"it is told with -v", []string{file, "--known-failing", known, "-v"}, 0, []string{"known: ", "2.9.3: not retried"}},
		{"an unexpected pass fails", []string{file, "--known-failing", stale}, 1, []string{"problem: driver: unexpected pass"}},
		{"an engine does not differ from itself", []string{"--engine", "reference", "--engine", "reference", file}, 0, []string{"2 same, 0 different"}},
		{"a policy that lacks rules differs", []string{"--generate", "60", "--engine", "reference", "--engine", "reference:retryable-reads@2026", "--backoff", "none", "--limit", "1", "--write", filepath.Join(dir, "found")}, 1,
			[]string{"shrunk to: ", "wrote ", "- send "}},
		{"the table", []string{"--deviations"}, 0, []string{"# Deviations", "| D1 |"}},
		{"no suite", nil, 2, []string{"name suites, or --generate N"}},
		{"suites and schedules", []string{"--generate", "5", file}, 2, []string{"name no path with it"}},
		{"a seed of nothing", []string{"--seed", "5", file}, 2, []string{"go with --generate"}},
		{"known failures of nothing", []string{"--generate", "5", "--known-failing", known}, 2, []string{"reads none"}},
		{"one engine", []string{"--engine", "reference", file}, 2, []string{"two engines are compared, and 1 are named"}},
		{"an engine that there is not", []string{"--engine", "reference", "--engine", "drivel", file}, 2, []string{`no engine "drivel"`, "driver, reference"}},
		{"a policy that there is not", []string{"--engine", "reference", "--engine", "reference:never", file}, 2, []string{"never"}},
		{"a pattern that matches nothing", []string{"--run", "nothing", file}, 2, []string{"nothing"}},
		{"a test that neither engine runs", []string{"--topology", "single", file}, 2, []string{"nothing was compared", "2 not compared"}},
	} {
		t.Run(row.why, func(t *testing.T) {
			var out bytes.Buffer
			p := New()
			p.Stdout, p.Stderr, p.Stdin = &out, &out, strings.NewReader("")
			p.Getenv = func(string) string { return "" }
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			if code := p.Main(ctx, append([]string{"compare"}, row.args...)); code != row.code {
				t.Errorf("exit code %d, want %d", code, row.code)
			}
			for _, s := range row.says {
				if !strings.Contains(out.String(), s) {
					t.Errorf("does not say %q", s)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
	if text := read(t, records); !strings.Contains(text, `"test":"not the same"`) || !strings.Contains(text, `"aspect":"verdict"`) {
		t.Errorf("records: %s", text)
	}
	found, err := os.ReadDir(filepath.Join(dir, "found"))
	if err != nil || len(found) != 1 {
		t.Fatalf("written: %v, %v", found, err)
	}
}
