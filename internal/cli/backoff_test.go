package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// overloadSuite fails, so that the decisions of its insert are reported.
const overloadSuite = `description: overload
schemaVersion: "1.4"
runOnRequirements: [{minServerVersion: "4.4", topologies: [replicaset]}]
createEntities:
  - client: {id: client, useMultipleMongoses: false}
  - database: {id: database, client: client, databaseName: backoff}
  - collection: {id: collection, database: database, collectionName: coll}
tests:
  - description: insert
    operations:
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint:
            configureFailPoint: failCommand
            mode: alwaysOn
            data: {failCommands: [insert], errorCode: 462, errorLabels: [SystemOverloadedError, RetryableError]}
      - name: insertOne
        object: collection
        arguments: {document: {a: 1}}
`

// TestBackoffInReports: delays stand in each report, slept or not.
func TestBackoffInReports(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "overload.yml")
	write(t, file, overloadSuite)
	for _, backoff := range []string{backoffReal, backoffNone} {
		t.Run(backoff, func(t *testing.T) {
			records, junit := filepath.Join(dir, backoff+".json"), filepath.Join(dir, backoff+".xml")
			var out, errs bytes.Buffer
			p := New()
			p.Stdout, p.Stderr, p.Stdin = &out, &errs, strings.NewReader("")
			p.Getenv = func(string) string { return "" }
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if code := p.Main(ctx, []string{"run", "--backoff", backoff, "--json", records, "--junit", junit, file}); code != 1 {
				t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
			}
			for name, text := range map[string]string{"text": out.String(), "JSON": read(t, records), "JUnit": read(t, junit)} {
				want := `attempt \d: back off \S+ [\d.]+ ms \[[^\]]*B6\]`
				if name == "JSON" {
					want = `"action":"back off"[^}]*"delayMS":[\d.]+`
				}
				if n := len(regexp.MustCompile(want).FindAllString(text, -1)); n != 2 {
					t.Errorf("%s has %d delays, want 2:\n%s", name, n, text)
				}
			}
			if again := regexp.MustCompile(`utr run [^\n]*--backoff ` + backoff).FindString(out.String()); again == "" {
				t.Errorf("the command that runs it again forgets --backoff:\n%s", out.String())
			}
		})
	}
	p := New()
	var errs bytes.Buffer
	p.Stdout, p.Stderr, p.Getenv = &errs, &errs, func(string) string { return "" }
	if code := p.Main(context.Background(), []string{"run", "--backoff", "some", file}); code != 2 {
		t.Errorf("exit code %d for a backoff that there is not", code)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
