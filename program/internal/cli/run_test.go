package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

const minimal = `{"id": "repl0", "members": [{}], "login": "bob", "password": "hunter22"}`

// Flags that fields does not show.
func TestFlagsBeyondFields(t *testing.T) {
	b := newBench(t)
	write(t, "known.txt", "first # a reason\n")
	b.utr("run --known-failing known.txt suite.yml")
	testkit.Equal(t, "known failures", len(b.ran.KnownFailing) == 1 && b.ran.KnownFailing[0].Reason == "a reason", true)
	b.utr("run --shuffle suite.yml")
	testkit.Equal(t, "--shuffle alone draws a seed", b.ran.Shuffle != nil, true)
	b.utr("run --topology sharded -")
	testkit.Equal(t, "standard input", b.suites[0].File, stdinName)
	write(t, "secure.json", `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`)
	for line, want := range map[string]string{
		"run --orchestration http://h:1 --cluster secure.json --orchestration-files /files":           "/files/ca.pem",
		"DRIVERS_TOOLS=/tools run --orchestration http://h:1 --tls":                                   "/tools/.evergreen/x509gen/ca.pem",
		"run --orchestration http://h:1 --topology single --tls --auth on --orchestration-files /ssl": "/ssl/.evergreen/x509gen/ca.pem",
	} {
		b.env = map[string]string{ledger.EnvDir: b.env[ledger.EnvDir]}
		b.expect(t, "certificates", line+" suite.yml", 0, "")
		testkit.Equal(t, line, b.opened.(deployment.OrchestrationOptions).Clusters[0].Configuration.CAFile, want)
	}
	f := newFlags(&invocation{program: New()}, &cobra.Command{})
	v := false
	f.toggle(&v, "verbose", "")
	err := f.Parse([]string{"a", "-", "-v", "--", "-v", "--x"})
	testkit.Equal(t, "flags end at two dashes", fmt.Sprint(f.Args(), err, v), "[a - -v --x] <nil> true")
	testkit.Equal(t, "seeds", fmt.Sprint(joinSeeds([]string{"--shuffle", "7", "--shuffle", "a", "--", "--shuffle", "8"})),
		"[--shuffle=7 --shuffle a -- --shuffle 8]")
	verdicts := []*result.Verdict{{Test: result.TestID{Description: "x", Cell: "a"}},
		{Test: result.TestID{Description: "y", Cell: "b"}}}
	for cell, want := range map[string]int{"a": 1, "c": 2, "": 2} { // durations of other cells are better than none
		testkit.Equal(t, "verdicts for the durations of cell "+cell, len(ofCell(verdicts, cell)), want)
	}
}

// The pattern for a test matches it, whatever its description contains, and has no control characters.
func TestRerunQuotes(t *testing.T) {
	for description, want := range map[string]string{
		`(a|b)* \d [x] $y`: `\(a\|b\)\* \\d \[x\] \$y`,
		"ünï ☃":            "ünï ☃",
		"a\nb\tc\x1b[31m":  `a\x{a}b\x{9}c\x{1b}\[31m`,
		"\uFFFD":           `\x{fffd}`,
		"a\u00a0b\u2028c":  "a\u00a0b" + `\x{2028}c`, // a no-break space can be printed
	} {
		testkit.Equal(t, description, quotePattern(description), want)
		p, err := regexp.Compile("^" + quotePattern(description) + "$")
		testkit.Check(t, err)
		testkit.Equal(t, "its pattern finds "+description, p.MatchString(description), true)
	}
	for file, want := range map[string]string{"-v.yml": "-v.yml", stdinName: "-"} {
		c := &invocation{program: New()}
		again := declareRun(newFlags(c, &cobra.Command{})).rerun(c)(result.TestID{File: file, Description: "x"})
		f := newFlags(c, &cobra.Command{})
		declareRun(f)
		testkit.Check(t, f.Parse(again[2:]))
		testkit.Equal(t, fmt.Sprintf("%q reads back as", again), f.Args(), []string{want})
	}
}

// From its start, a run replaces an earlier report by one that says that it has not finished, also if it panics.
// The scripts in ends have the state at the end of a run.
func TestReportDuringARun(t *testing.T) {
	b := newBench(t)
	write(t, "r.json", "earlier")
	testkit.Check(t, os.Chmod("r.json", 0o600))
	const unfinished = `"breaks":[{"reason":"it has not finished"}]`
	b.arrive = func() { testkit.Contains(t, testkit.Read(t, "r.json"), unfinished) }
	b.during = b.arrive
	line := "run --json r.json --uri mongodb://u:" + testkit.Secret + "@h1:1/ suite.yml"
	b.expect(t, "a run", line, 0, "")
	about, err := os.Stat("r.json")
	testkit.Check(t, err)
	testkit.Equal(t, "its mode", about.Mode().Perm().String(), "-rw-------")
	write(t, "r.json", "earlier")
	b.during = func() { panic("a fault of the runner") }
	func() {
		defer func() { testkit.Equal(t, "the panic", recover(), "a fault of the runner") }()
		b.utr(line)
	}()
	testkit.Equal(t, "files after a panic", slices.Sorted(maps.Keys(contentsOf(t, "."))), []string{"r.json", "suite.yml"})
	testkit.Contains(t, testkit.Read(t, "r.json"), `"skipKind":"not-run"`,
		`"breaks":[{"reason":"it ended before its first test"}]`)
}

// A suite runs again when it changes, even if it is then invalid; others do not.
func TestWatch(t *testing.T) {
	b := realBench(t)
	var out, errs testkit.Buffer
	b.Stdout, b.Stderr = &out, &errs
	passing := `{description: x, schemaVersion: "1.0", createEntities: [{client: {id: c}}, {database: {id: d, client: c, databaseName: utr-watch}}],
		tests: [{description: a, operations: [{name: runCommand, object: d, arguments: {commandName: ping, command: {ping: 1}}}]}]}`
	write(t, "d/a.yml", passing)
	write(t, "d/a.json", "{}")
	write(t, "d/b.yml", strings.Replace(passing, "description: a", "description: b", 1))
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() { code <- b.Main(ctx, []string{"run", "--watch", "--topology", "single", "d"}) }()
	said := func(of *testkit.Buffer, what string, times int) {
		t.Helper()
		testkit.Until(t, what, func() bool { return strings.Count(of.String(), what) >= times })
		testkit.Equal(t, what, strings.Count(of.String(), what), times)
	}
	said(&errs, "waiting for a suite to change", 1)
	said(&out, "2 passed, 0 failed, 0 skipped\n", 1)
	write(t, "d/a.yml", strings.Replace(passing, "ping: 1", "pong: 12", 1))
	said(&errs, "changed: d/a.yml", 1)
	said(&errs, "waiting for a suite to change", 2)
	said(&out, "0 passed, 1 failed, 0 skipped\n", 1)
	write(t, "d/a.yml", "tests: 3\n")
	said(&errs, "waiting for a suite to change", 3)
	said(&errs, "d/a.yml:1:1: error: this is not a unified suite", 1)
	cancel()
	testkit.Equal(t, "the exit code", <-code, ExitOK)
	testkit.Equal(t, "without files", b.Main(t.Context(), []string{"run", "--watch", "smoke"}), ExitUsage)
}
