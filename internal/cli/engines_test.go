package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// failing is a suite with a failure for each client: it has the code that a
// test fills in.
const failing = `description: failing
schemaVersion: "1.4"
runOnRequirements: [{minServerVersion: "4.4", topologies: [replicaset]}]
createEntities:
  - client: {id: client, useMultipleMongoses: false, observeEvents: [commandStartedEvent]}
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll}
tests:
  - description: the same on both
    operations: [{name: find, object: collection, arguments: {filter: {}}}]
  - description: not the same
    operations:
      - name: failPoint
        object: testRunner
        arguments: {client: client, failPoint: {configureFailPoint: failCommand, mode: MODE, data: {failCommands: [insert], ERROR}}}
      - {name: insertOne, object: collection, arguments: {document: {_id: 2}}}
`

// The Go driver passes the suite as the reference does, except for an error
// that only one of them retries: see docs/deviations.md.
func TestCompare(t *testing.T) {
	b := realBench(t)
	write(t, "x.yml", strings.NewReplacer("MODE", "{times: 1}", "ERROR", "errorCode: 50, errorLabels: [RetryableWriteError]").Replace(failing))
	write(t, "known.txt", "not the same$ # 2.9.3: not retried\n")
	write(t, "stale.txt", "the same on both$ # 2.9.3: no longer so\nnot the same$ # 2.9.3: not retried\n")
	for _, r := range []struct {
		reason, line string
		code         int
		want         string
	}{
		{"a difference is shown with both logs, and fails", "compare x.yml --json records", 1,
			"x.yml:11:5: not the same (replicaset … reference: passed … driver: failed … - send insert on db … 1 same, 1 different, 0 explained, 0 not compared"},
		{"a known failure is explained, with -v in words", "compare x.yml --known-failing known.txt -v", 0, "known:  … 2.9.3: not retried … 1 same, 0 different, 1 explained, 0 not compared"},
		{"an unexpected pass fails", "compare x.yml --known-failing stale.txt", 1, "problem: driver: unexpected pass"},
		{"an engine does not differ from itself", "compare --engine reference --engine reference x.yml", 0, "2 same, 0 different"},
		{"a policy that lacks rules differs", "compare --generate 10 --engine reference --engine reference:retryable-reads@2026 --backoff none --limit 1 --write found", 1,
			"shrunk to:  … - send  … wrote found/seed-1-001-"},
		{"the table", "compare --deviations", 0, "# Deviations … | D1 |"},
		{"a test that neither engine runs", "compare --topology single x.yml", 2, "2 not compared … nothing was compared"},
	} {
		b.expect(t, r.reason, r.line, r.code, r.want)
	}
	testkit.Says(t, read(t, "records"), `"test":"not the same"`, `"aspect":"verdict"`)
	testkit.Equal(t, "suites that --write wrote", len(contentsOf(t, "found")), 1)
}

// Every report shows backoff delays, slept or not.
func TestBackoffInReports(t *testing.T) {
	b := realBench(t)
	write(t, "x.yml", strings.NewReplacer("MODE", "alwaysOn", "ERROR", "errorCode: 462, errorLabels: [SystemOverloadedError, RetryableError]").Replace(failing))
	const line = `attempt \d: back off \S+ [\d.]+ ms \[[^\]]*B6\]`
	for _, backoff := range []string{backoffReal, backoffNone} {
		b.expect(t, backoff, "run --run not --backoff "+backoff+" --json json --junit junit x.yml", 1, "")
		for _, r := range []struct {
			report, text, want string
			times              int
		}{
			{"text", b.out.String(), line, 2}, {"JSON", read(t, "json"), `"action":"back off"[^}]*"delayMS":[\d.]+`, 2}, {"JUnit", read(t, "junit"), line, 2},
			{"the command that runs it again", b.out.String(), `utr run [^\n]*--backoff ` + backoff, 1},
		} {
			testkit.Equal(t, r.report+" has --backoff "+backoff, len(regexp.MustCompile(r.want).FindAllString(r.text, -1)), r.times)
		}
	}
}

// Flags reach the experiment, and its reports are written. A terminal sees the
// progress, of which nothing is left at the end.
func TestExperiment(t *testing.T) {
	const line = "experiment overload --capacity 50 --duration 6s --policy none --policy final --seed 0 --json json --html html --svg svg"
	b := newBench(t)
	b.expect(t, "in a pipe", line, 0, "seed 0")
	plain := b.out.String()
	lacks(t, "in a pipe", plain, "naive", "\x1b")
	testkit.Says(t, read(t, "html"), "<html")
	testkit.Says(t, read(t, "svg"), "<svg")
	var record struct {
		Config struct{ CapacityPerSec, Queue, IngressRatePerSec, Seed int }
		Runs   []struct{ Policy string }
	}
	testkit.Check(t, json.Unmarshal([]byte(read(t, "json")), &record))
	testkit.Equal(t, "the record", record, "{{50 25 50 0} [{none} {final}]}")
	b.Terminal = func() (int, bool) { return 80, true }
	b.expect(t, "on a terminal", line, 0, "none 0%")
	_, rest, _ := strings.Cut(b.out.String(), "\r\x1b[Koverload:")
	testkit.Equal(t, "on a terminal", "overload:"+rest, plain)
}
