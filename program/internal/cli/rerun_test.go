package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// Every flag of utr run has one kind, and the command that runs a test again repeats it if it affects the verdict.
func TestRerunRepeatsFlags(t *testing.T) {
	c := &invocation{program: New(), secrets: redactor{&secret.Keeper{}}}
	parsed := func(args ...string) (*flags, *runFlags) {
		f := newFlags(c, &cobra.Command{})
		r := declareRun(f)
		testkit.Check(t, f.Parse(args))
		return f, r
	}
	kinds := map[string][]string{}
	for _, k := range runFlagKinds() {
		for _, name := range k.flags {
			kinds[name] = append(kinds[name], k.affects)
		}
	}
	all := map[string]bool{}
	runCommand(c).Flags().VisitAll(func(f *pflag.Flag) {
		all[f.Name] = true
		testkit.Equal(t, "kinds of --"+f.Name+" in runFlagKinds", len(kinds[f.Name]), 1)
	})
	values := map[string]string{"auth": "off", "backoff": "none", "cluster": "single", "fail-points": "proxy", "known-failing": "list.txt",
		"overwrite": "true", "policy": "retryable-reads@2024", "require-fail-points": "true", "reseed": "always", "server-api": "1", "tls": "true", "uri-option": "compressors=zlib"}
	durations := []string{"deadline", "timeout", "wait-for-lock"}
	texts := []string{"engine", "engines", "orchestration", "orchestration-version", "orchestration-files",
		"local", "uri", "single-uri"}
	for name, kind := range kinds {
		if !all[name] {
			t.Errorf("runFlagKinds names --%s, which utr run does not have", name)
			continue
		}
		if kind[0] == onSelection || kind[0] == onOutput {
			continue
		}
		value := values[name]
		switch {
		case slices.Contains(durations, name):
			value = "7s"
		case slices.Contains(texts, name):
			value = "a text"
		case value == "": // the others are numbers
			value = "7"
		}
		line := []string{"--" + name + "=" + value, "suite.yml"}
		f, r := parsed(line...)
		again := r.rerun(c)(result.TestID{File: "suite.yml", Description: "first"})
		g, _ := parsed(again[2:]...)
		testkit.Equal(t, fmt.Sprintf("%q repeats --%s", again, name), g.Changed(name), true)
		testkit.Equal(t, fmt.Sprintf("the value of --%s in %q", name, again), g.Lookup(name).Value.String(),
			f.Lookup(name).Value.String())
	}
}

// The command of a report gives the test the same verdict, and the run the same exit code. Without the flags of the
// row, it does not.
func TestRerunReproduces(t *testing.T) {
	b := realBench(t)
	testkit.Check(t, os.Symlink(self(t), adapterName))
	const find = `{name: find, object: e, arguments: {filter: {}}}`
	for name, test := range map[string]string{
		"wrong": `operations: [{name: find, object: e, arguments: {filter: {}}, expectResult: [{a: 1}]}]`,
		"right": `operations: [` + find + `]`,
		"slow":  `operations: [{name: wait, object: testRunner, arguments: {ms: 1000}}]`,
		"open": `operations: [{name: runCommand, object: d, arguments: {commandName: connectionStatus, command: {connectionStatus: 1}}, ` +
			`expectResult: {authInfo: {authenticatedUsers: [], authenticatedUserRoles: []}}}]`,
		"plain": `operations: [` + find + `], expectEvents: [{client: c, events: [{commandStartedEvent: {command: {apiVersion: {$$exists: false}}}}]}]`,
		"unused": `operations: [{name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: failCommand, ` +
			`mode: {times: 1}, data: {failCommands: [insert], errorCode: 91}}}}, ` + find + `]`,
		"insert": `operations: [{name: insertOne, object: e, arguments: {document: {}}}]`,
		"fault": `operations: [{name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: failCommand, ` +
			`mode: {times: 1}, data: {failCommands: [find], errorCode: 462, errorLabels: [SystemOverloadedError, RetryableError]}}}}, ` + find + `]`,
	} {
		write(t, name+".yml", `{description: d, schemaVersion: "1.10", createEntities: [{client: {id: c, observeEvents: [commandStartedEvent]}}, `+
			`{database: {id: d, client: c, databaseName: x}}, {collection: {id: e, database: d, collectionName: e}}], tests: [{description: `+
			name+", "+test+"}]}")
	}
	write(t, "list.txt", "^wrong # a reason\n^another # a test of a file that does not run again\n")
	write(t, "another.yml", testkit.Read(t, "wrong.yml"))
	write(t, "own.yml", "mine: {command: ./adapter until insert}")
	run := func(args []string) (code int, verdicts string, again []string) {
		code = b.utr(report.Quote(slices.Insert(slices.Clone(args[1:]), 1, "--json", "r.json")))
		for line := range strings.Lines(testkit.Read(t, "r.json")) {
			var r struct {
				File, Test, Status string
				Rerun              []string
			}
			testkit.Check(t, json.Unmarshal([]byte(line), &r))
			if r.Test != "" && strings.HasPrefix(r.File, r.Test) {
				verdicts, again = verdicts+r.Status+" ", r.Rerun
			}
		}
		return code, verdicts + fmt.Sprint(code), again
	}
	for _, r := range []struct{ flags, test, want string }{
		{"--known-failing list.txt another.yml", "wrong", "known-failing 0"},
		{"--require-fail-points", "unused", "failed 1"},
		{"--timeout 50ms", "slow", "failed 1"},
		{"--deadline 50ms", "slow", "skipped 3"},
		{"--policy retryable-reads@2024", "fault", "failed 1"},
		{"--uri-option retryReads=false", "fault", "failed 1"},
		{"--count 2", "right", "passed passed 0"},
		{"--server-api 1", "plain", "failed 1"},
		{"--auth on", "open", "failed 1"},
		{"--engines own.yml --engine mine", "insert", "broken 3"},
	} {
		t.Run(r.flags, func(t *testing.T) {
			args := strings.Fields("utr run --topology replicaset " + r.flags + " " + r.test + ".yml")
			_, got, again := run(args)
			testkit.Equal(t, "the run", got, r.want)
			_, got, _ = run(again)
			testkit.Equal(t, report.Quote(again), got, r.want)
			_, got, _ = run([]string{"utr", "run", "--topology", "replicaset", r.test + ".yml"})
			testkit.Equal(t, "without the flags, the verdict is the same", got == r.want, false)
		})
	}
}
