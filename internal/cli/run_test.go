package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// minimal is a cluster for an orchestration service.
const minimal = `{"id": "repl0", "members": [{}], "login": "bob", "password": "hunter22"}`

// Some flags reach what fields does not show.
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
		testkit.Equal(t, line, b.opened.(deployment.OrchestrationOptions).Clusters[0].Configuration.CAFile(), want)
	}
	f := newFlags()
	v := f.toggle("v", "")
	paths, err := f.parse([]string{"a", "-", "-v", "--", "-v", "--x"})
	testkit.Equal(t, "flags end at two dashes", fmt.Sprint(paths, err, *v), "[a - -v --x] <nil> true")
	verdicts := []*result.Verdict{{Test: result.TestID{Description: "x", Cell: "a"}}, {Test: result.TestID{Description: "y", Cell: "b"}}}
	for cell, want := range map[string]int{"a": 1, "c": 2, "": 2} { // durations of other cells are better than none
		testkit.Equal(t, "verdicts for the durations of cell "+cell, len(ofCell(verdicts, cell)), want)
	}
}

// The pattern for a test finds it, whatever its description holds, and cannot
// steer a terminal.
func TestRerunQuotes(t *testing.T) {
	for _, r := range []struct{ reason, description, want string }{
		{"operators of regular expressions", `(a|b)* \d [x] $y`, `\(a\|b\)\* \\d \[x\] \$y`},
		{"other scripts", "ünï ☃", "ünï ☃"},
		{"a new line, a tab and an escape", "a\nb\tc\x1b[31m", `a\x{a}b\x{9}c\x{1b}\[31m`},
		{"the replacement character", "\uFFFD", `\x{fffd}`},
		{"a no-break space", "a\u00a0b\u2028c", "a\u00a0b" + `\x{2028}c`},
	} {
		testkit.Equal(t, r.reason, quotePattern(r.description), r.want)
		var p patternsFlag
		if err := p.Set("^" + quotePattern(r.description) + "$"); err != nil || !p[0].MatchString(r.description) {
			t.Errorf("%s: %v does not find the test (%v)", r.reason, p, err)
		}
	}
	for file, want := range map[string]string{"-v.yml": "-v.yml", stdinName: "-"} {
		again := declareRun(newFlags()).rerun(&call{program: &Program{}})(result.TestID{File: file, Description: "x"})
		f := newFlags()
		declareRun(f)
		paths, err := f.parse(again[2:])
		testkit.Check(t, err)
		testkit.Equal(t, fmt.Sprintf("%q reads back as", again), paths, []string{want})
	}
}

// How a run ends decides what becomes of an earlier report, of the lock's entry
// in the ledger, and of the logs of local servers.
func TestWhatARunLeaves(t *testing.T) {
	no := errors.New("no")
	for _, r := range []struct {
		reason string
		change func(*bench)
		left   string // of the earlier report, the lock and the logs
	}{
		{"all well", func(*bench) {}, ""},
		{"a test failed", func(b *bench) { b.summary.Failed = 1 }, "logs"},
		{"a test broke", func(b *bench) { b.summary.Broken = 1 }, "logs"},
		{"the run has a problem", func(b *bench) { b.summary.Problems = []string{"x"} }, "logs"},
		{"the run cannot begin", func(b *bench) { b.fails, b.notes = no, nil }, "logs report"},
		{"the deployment cannot be opened", func(b *bench) { b.opening = no }, "report"},
		{"the deployment is in use", func(b *bench) { b.opening = &deployment.HeldError{} }, "report"},
		{"the lock cannot be removed", func(b *bench) { b.closing = no }, "lock"},
		{"the runner panics", func(b *bench) { b.during = func() { panic("a fault of the runner") } }, "report"},
		{"interrupted", func(b *bench) {
			b.summary.Failed = 1
			b.ctx, b.during = context.WithCancel(b.ctx)
		}, ""},
	} {
		var left []string
		for _, where := range []string{"--uri mongodb://u:s3cret@h1:1/", "--local /r"} {
			b := newBench(t)
			b.notes = []result.Note{finished("a", result.Passed)}
			write(t, "r.json", "earlier")
			testkit.Check(t, os.Chmod("r.json", 0o600))
			r.change(b)
			during := "earlier"
			locked := func() int {
				for _, text := range b.ledger(t) {
					testkit.Equal(t, r.reason+": the lock is remembered without its password", says(text, "mongodb://***@h1:1/") && !says(text, "s3cret"), true)
				}
				return len(b.ledger(t))
			}
			b.arrive = func() {
				testkit.Equal(t, r.reason+": locks before the deployment opens", locked(), strings.Count(where, "uri"))
			}
			inside := b.during
			b.during = func() {
				if during = read(t, "r.json"); inside != nil {
					inside()
				}
			}
			func() {
				defer func() { _ = recover() }()
				b.utr("run --json r.json " + where + " suite.yml")
			}()
			testkit.Equal(t, r.reason+": the report during the run", during, "earlier")
			about, err := os.Stat("r.json")
			testkit.Check(t, err)
			testkit.Equal(t, r.reason+": its mode", about.Mode().Perm(), fs.FileMode(0o600))
			testkit.Equal(t, r.reason+": the folder", slices.Sorted(maps.Keys(contentsOf(t, "."))), "[r.json suite.yml]")
			for what, is := range map[string]bool{"report": read(t, "r.json") == "earlier", "lock": locked() > 0, "logs": b.kept} {
				if is {
					left = append(left, what)
				}
			}
		}
		slices.Sort(left)
		testkit.Equal(t, r.reason, slices.Compact(left), strings.Fields(r.left))
	}
}
