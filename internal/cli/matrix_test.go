package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// nightBench is a bench whose cells are made up: what each does stands in
// plays, by its name.
type nightBench struct {
	*bench
	file, results string
	plays         map[string]play

	mu   sync.Mutex
	runs []Child // in the order in which they began
}

// play is what a cell does. Its report is written if it has an exit code that
// runs end with, unless it is cut.
type play struct {
	statuses []result.Status
	problems []string
	code     int
	died     error
	says     string
	cut      string                    // left of the report: "nothing", "end", "line"
	during   func(ctx context.Context) // called before it ends
}

const threeCells = `clusters: [{embedded: {topology: [single, replicaset, sharded]}}]
suites: {name: s, paths: ["%s"]}
`

func newNight(t *testing.T, file string) *nightBench {
	t.Helper()
	b := &nightBench{bench: newBench(), plays: map[string]play{}}
	dir := t.TempDir()
	b.file, b.results = filepath.Join(dir, "night.yml"), filepath.Join(dir, "results")
	if strings.Contains(file, "%s") {
		suiteName := filepath.Join(dir, "suite.yml")
		write(t, suiteName, suite)
		file = fmt.Sprintf(file, suiteName)
	}
	write(t, b.file, file)
	b.Build = func() (string, error) { return "utr 1", nil }
	b.Child = func(ctx context.Context, c Child) (int, error) {
		b.mu.Lock()
		b.runs = append(b.runs, c)
		p := b.plays[valueOf(c.Args, "--cell")]
		b.mu.Unlock()
		if p.during != nil {
			p.during(ctx)
		}
		if p.says != "" {
			_, _ = c.Output.Write([]byte(p.says + "\n"))
		}
		b.report(t, c, p, ctx.Err() != nil)
		return p.code, p.died
	}
	return b
}

// report writes what the play of a cell gives.
func (b *nightBench) report(t *testing.T, c Child, p play, interrupted bool) {
	cell := valueOf(c.Args, "--cell")
	var text strings.Builder
	r := report.New("memory", report.JSON(), &text)
	r.Note(result.RunStarted{Engine: "reference 1", Cell: cell, Shard: valueOf(c.Args, "--shard")})
	if p.statuses == nil {
		p.statuses = []result.Status{result.Passed}
	}
	for i, s := range p.statuses {
		r.Note(result.TestFinished{Verdict: &result.Verdict{Status: s, Duration: time.Second, Test: result.TestID{
			File: "suite.yml", Suite: "the suite", Description: fmt.Sprintf("test %d", i), Deployment: "single 8.0", Cell: cell}}})
	}
	r.Note(result.RunFinished{Summary: result.Summary{Problems: p.problems, Interrupted: interrupted, Duration: time.Second}})
	out := text.String()
	switch p.cut {
	case "nothing":
		return
	case "end":
		out = out[:strings.LastIndex(strings.TrimSpace(out), "\n")+1]
	case "line":
		out = out[:len(out)-20]
	}
	if err := os.WriteFile(valueOf(c.Args, "--json"), []byte(out), 0o644); err != nil {
		t.Error(err)
	}
}

// run runs the matrix, and gives the exit code.
func (b *nightBench) run(t *testing.T, args ...string) int {
	t.Helper()
	return b.runIn(t.Context(), args...)
}

func (b *nightBench) runIn(ctx context.Context, args ...string) int {
	b.out.Reset()
	b.err.Reset()
	b.runs = nil
	return b.Main(ctx, append([]string{"matrix", b.file, "--results", b.results}, args...))
}

// ran names the cells that ran.
func (b *nightBench) ran() (names []string) {
	for _, c := range b.runs {
		names = append(names, valueOf(c.Args, "--cell"))
	}
	slices.Sort(names)
	return names
}

func (b *nightBench) wantRan(t *testing.T, reason string, want ...string) {
	t.Helper()
	if got := b.ran(); !slices.Equal(got, want) {
		t.Errorf("%s: %q ran, want %q\n%s%s", reason, got, want, b.out.String(), b.err.String())
	}
}

// How a cell ends decides about the exit code, and is told.
func TestCellsEnd(t *testing.T) {
	for _, r := range []struct {
		reason string
		play   play
		code   int
		tells  string // part of the cell's line
		kept   bool   // not run again
	}{
		{"all well", play{}, 0, "✔ single_reference_s: 1 passed in 1s\n", true},
		{"a test failed", play{statuses: []result.Status{result.Failed, result.Passed}, code: 1}, 1, "✘ single_reference_s: 1 failed, 1 passed in", true},
		{"a test is flaky", play{statuses: []result.Status{result.Flaky}, code: 1}, 1, "1 flaky", true},
		{"a known failure", play{statuses: []result.Status{result.KnownFailing}}, 0, "✔ single_reference_s: 0 passed", true},
		{"a known failure that passed", play{problems: []string{"known.txt:1: passed"}, code: 1}, 1, "✘ single_reference_s: 1 problem, 1 passed in 1s (1 problem)", true},
		{"a test broke", play{statuses: []result.Status{result.Broken}, code: 3}, 3, "1 broken", false},
		{"its process died", play{died: errors.New("its process died: signal: killed"), cut: "end"}, 3, "(its process died: signal: killed)", false},
		{"it crashed", play{code: 2, cut: "line", says: "panic: boom\n\ngoroutine 1 [running]:\nmain.main()"}, 3, "(exit code 2: panic: boom)", false},
		{"the cluster is not there", play{code: 3, cut: "nothing", says: "utr: no answer\n  from h:1"}, 3, "(exit code 3: no answer)", false},
		{"it ended without a report", play{cut: "nothing"}, 3, "(exit code 0: it printed nothing)", false},
		{"the report was cut off", play{cut: "end"}, 3, "✘ single_reference_s: 1 passed in", false},
		{"all well, and the cluster could not be stopped", play{code: 3, says: "utr: stopping the deployment: no"}, 3, "(exit code 3: stopping the deployment: no)", false},
		{"it took too long", play{code: 3, during: func(ctx context.Context) { <-ctx.Done() }}, 3, "(cut off after 1s)", false},
	} {
		b := newNight(t, threeCells)
		limit := "1m"
		if r.play.during != nil {
			limit = "1s" // long for the cells that do nothing
		}
		b.plays["single_reference_s"] = r.play
		if code := b.run(t, "--cell-timeout", limit); code != r.code || !strings.Contains(b.out.String(), r.tells) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", r.reason, code, r.code, r.tells, b.out.String(), b.err.String())
		}
		b.wantRan(t, r.reason, "replicaset_reference_s", "sharded_reference_s", "single_reference_s")
		for _, row := range []string{"✔ replicaset_reference_s ", "✔ sharded_reference_s ", "total "} {
			if !strings.Contains(b.out.String(), row) {
				t.Errorf("%s: the table has no row %q\n%s", r.reason, row, b.out.String())
			}
		}
		code := b.run(t, "--cell-timeout", limit)
		if r.kept {
			b.wantRan(t, r.reason+", again")
		} else {
			b.wantRan(t, r.reason+", again", "single_reference_s")
		}
		if code != r.code {
			t.Errorf("%s, again: exit code %d, want %d\n%s", r.reason, code, r.code, b.out.String())
		}
	}
}

// What a cell gave is kept until something that it depends on has changed.
func TestFinishedCellsAreKept(t *testing.T) {
	all := []string{"replicaset_reference_s", "sharded_reference_s", "single_reference_s"}
	for _, r := range []struct {
		reason string
		change func(*testing.T, *nightBench) (args []string)
		again  []string
	}{
		{"nothing changed", func(*testing.T, *nightBench) []string { return nil }, nil},
		{"more of them at once", func(*testing.T, *nightBench) []string { return []string{"--jobs", "3"} }, nil},
		{"--fresh", func(*testing.T, *nightBench) []string { return []string{"--fresh"} }, all},
		{"--fresh for one", func(*testing.T, *nightBench) []string { return []string{"--fresh", "--only", "^sha"} }, all[1:2]},
		{"another utr", func(_ *testing.T, b *nightBench) []string {
			b.Build = func() (string, error) { return "utr 2", nil }
			return nil
		}, all},
		{"another suite", func(t *testing.T, b *nightBench) []string {
			write(t, filepath.Join(filepath.Dir(b.file), "suite.yml"), suite+"# changed\n")
			return nil
		}, all},
		{"another part of the tests", func(*testing.T, *nightBench) []string { return []string{"--shard", "1/2"} }, all},
		{"another definition of one", func(t *testing.T, b *nightBench) []string {
			old, err := os.ReadFile(b.file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, b.file, strings.Replace(string(old), "[single, replicaset, sharded]", "[single, replicaset]", 1)+
				"include: [{clusters: {name: sharded, embedded: {topology: sharded, mongoses: 3}}}]\n")
			return nil
		}, all[1:2]},
		{"a report that is gone", func(t *testing.T, b *nightBench) []string {
			if err := os.Remove(filepath.Join(b.results, all[0]+".json")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, all[:1]},
		{"a report that is none any more", func(t *testing.T, b *nightBench) []string {
			write(t, filepath.Join(b.results, all[0]+".json"), "x\n")
			return nil
		}, all[:1]},
		{"nobody knows what is finished", func(t *testing.T, b *nightBench) []string {
			write(t, filepath.Join(b.results, finishedFile), "{")
			return nil
		}, all},
	} {
		b := newNight(t, threeCells)
		if code := b.run(t); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", r.reason, code, b.out.String(), b.err.String())
		}
		first := b.out.String()
		if code := b.run(t, r.change(t, b)...); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", r.reason, code, b.out.String(), b.err.String())
		}
		b.wantRan(t, r.reason, r.again...)
		if r.again == nil && (strings.Contains(first, "kept from") || !strings.Contains(b.out.String(), "3 cells, 3 of them finished already") ||
			strings.Count(b.out.String(), "kept from an earlier run") != 3) {
			t.Errorf("%s: it does not tell\n%s", r.reason, b.out.String())
		}
	}
}

// An interruption ends what runs, begins nothing more, says what is finished,
// and leaves that for the next time.
func TestNightIsInterrupted(t *testing.T) {
	b := newNight(t, threeCells)
	ctx, interrupt := context.WithCancel(t.Context())
	b.plays["replicaset_reference_s"] = play{code: 3, during: func(ctx context.Context) { interrupt(); <-ctx.Done() }}
	if code := b.runIn(ctx); code != ExitBroken {
		t.Errorf("exit code %d", code)
	}
	b.wantRan(t, "interrupted", "replicaset_reference_s", "single_reference_s")
	for _, part := range []string{"1/3 ✔ single_reference_s", "2/3 ✘ replicaset_reference_s: interrupted", "not run: interrupted", "interrupted: "} {
		if !strings.Contains(b.out.String(), part) {
			t.Errorf("standard output lacks %q\n%s", part, b.out.String())
		}
	}
	if want := "1 of 3 cells are finished; the same command goes on with the others"; !strings.Contains(b.err.String(), want) {
		t.Errorf("standard error lacks %q\n%s", want, b.err.String())
	}
	b.plays = map[string]play{}
	if code := b.run(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, b.out.String())
	}
	b.wantRan(t, "gone on", "replicaset_reference_s", "sharded_reference_s")
}

func TestMatrixUsage(t *testing.T) {
	for _, r := range []struct {
		reason, file string
		args         []string
		code         int
		err          string // part of standard error
	}{
		{"a problem of the file", "clusters: [{embeded: single}]\n", nil, 2, `night.yml:1:13: a cluster has no key "embeded"; did you mean embedded?`},
		{"a flag that the run refuses", "clusters: [{embedded: {topology: single, server-version: 3.2}}]\nsuites: s\n", nil, 2, "night.yml:1:12: the cell single-3.2_reference_s: --server-version: embedded deployments play"},
		{"a version without load balancers", "clusters: [{embedded: {topology: load-balanced, server-version: 4.4}}]\nsuites: s\n", nil, 2, "load balanced deployments came with 5.0"},
		{"a topology that there is not", "clusters: [{embedded: star}]\nsuites: s\n", nil, 2, "it must be one of auto, all, single"},
		{"a cell on all topologies", "clusters: [{embedded: all}]\nsuites: s\n", nil, 2, "a cell has one verdict for each test"},
		{"an engine that there is not", "clusters: [{embedded: single}]\nengines: [warp]\nsuites: s\n", nil, 2, `night.yml:1:12: the cell single_warp_s: there is no engine "warp"`},
		{"a policy that there is not", "clusters: [{embedded: single}]\nengines: [{name: reference, policy: none}]\nsuites: s\n", nil, 2, "there is no such policy"},
		{"TLS where the connection string decides", "clusters: [{name: u, uri: 'mongodb://h/'}]\nsuites: s\noptions: [{name: t, tls: true}]\n", nil, 2, "--tls chooses an embedded deployment"},
		{"a connection string that is none", "clusters: [{name: u, uri: 'http://h/'}]\nsuites: s\n", nil, 2, "connection string must start with"},
		{"an option that no driver knows", "clusters: [{embedded: single}]\nsuites: s\noptions: [{name: t, uri-options: {maxPoolSize: x}}]\n", nil, 2, "--uri-option"},
		{"standard input", "clusters: [{embedded: single}]\nsuites: {name: s, paths: ['-']}\n", nil, 2, "a cell has no standard input"},
		{"a suite that is not there", "clusters: [{embedded: single}]\nsuites: nowhere.yml\n", nil, 2, "night.yml:1:12: the cell single_reference_nowhere: nowhere.yml: there is no such file"},
		{"a list of known failures that is not there", "clusters: [{embedded: single}]\nengines: {name: reference, known-failing: nowhere.txt}\nsuites: s\n", nil, 2, "nowhere.txt"},
		{"no cell of the name", threeCells, []string{"--only", "nothing"}, 2, "--only: no cell matches"},
		{"half a part", threeCells, []string{"--shard", "1"}, 2, `--shard "1"`},
		{"durations without a part", threeCells, []string{"--durations", "x"}, 2, "--durations goes with --shard"},
		{"durations that are none", threeCells, []string{"--shard", "1/2", "--durations", "nowhere.json"}, 2, "nowhere.json"},
		{"two reports in one file", threeCells, []string{"--tap", "x", "--junit", "x"}, 2, "write to the same file"},
		{"a variable that the file has not", threeCells, []string{"--set", "A=b"}, 2, "--set A: the file has no ${A}"},
		{"what is no variable", threeCells, []string{"--set", "A"}, 2, "it must be NAME=VALUE"},
		{"two files", threeCells, []string{"other.yml"}, 2, "name one file"},
		{"a report that cannot be written", threeCells, []string{"--tap", "/nowhere/x"}, 3, "cannot write a report"},
		{"results that cannot be kept", threeCells, []string{"--results", "/dev/null/x"}, 3, "cannot keep results"},
	} {
		b := newNight(t, r.file)
		if code := b.run(t, r.args...); code != r.code || !strings.Contains(b.err.String(), r.err) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", r.reason, code, b.err.String(), r.code, r.err)
		}
		b.wantRan(t, r.reason)
	}
	b := newNight(t, threeCells)
	if code := b.Main(t.Context(), []string{"matrix"}); code != 2 {
		t.Errorf("no file: exit code %d", code)
	}
	if code := b.Main(t.Context(), []string{"matrix", filepath.Join(t.TempDir(), "no.yml")}); code != 2 {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}

// secretCluster has a password, a password behind percent signs, and one in the environment.
const secretCluster = `clusters:
- {name: a, uri: "mongodb://me:geheim%%21@h1/?serverSelectionTimeoutMS=1"}
- {name: b, uri: {uri: "${DB}", single-uri: "mongodb://me:verborgen@h3/?loadBalanced=true"}}
- {name: c, embedded: single}
suites: {name: s, paths: ["%s"]}
`

// Connection strings reach a cell through its environment, those of this process
// reach none, and their secrets nothing that is written.
func TestCellsKeepSecrets(t *testing.T) {
	b := newNight(t, secretCluster)
	b.env["DB"], b.env[envURI], b.env[envSingleURI] = "mongodb://me:heimlich@h2/?loadBalanced=true", "mongodb://other:parent@h9/", "mongodb://other:parent@h8/"
	b.plays["a_reference_s"] = play{code: 3, cut: "nothing", says: "utr: auth with geheim! or geheim%21 failed"}
	dir := t.TempDir()
	reports := []string{"--html", filepath.Join(dir, "h"), "--json", filepath.Join(dir, "j"), "--junit", filepath.Join(dir, "u"), "--markdown", filepath.Join(dir, "m"), "--tap", filepath.Join(dir, "t")}
	secrets := []string{"geheim", "verborgen", "heimlich", "parent"}
	everything := func() (all []string) {
		for _, where := range []string{dir, b.results} {
			files, _ := filepath.Glob(filepath.Join(where, "*"))
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, f+": "+string(text))
			}
		}
		return append(all, b.out.String(), b.err.String())
	}
	if code := b.run(t, append(reports, "-v")...); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if len(everything()) < 5+2+3 {
		t.Errorf("only %d texts were searched", len(everything()))
	}
	for _, text := range everything() {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%q is in %.200q", s, text)
			}
		}
	}
	want := map[string][2]string{
		"a_reference_s": {"mongodb://me:geheim%21@h1/?serverSelectionTimeoutMS=1", ""},
		"b_reference_s": {b.env["DB"], "mongodb://me:verborgen@h3/?loadBalanced=true"},
		"c_reference_s": {"", ""},
	}
	for _, c := range b.runs {
		uri, has := c.Env[envURI]
		single, hasSingle := c.Env[envSingleURI]
		if !has || !hasSingle || want[valueOf(c.Args, "--cell")] != [2]string{uri, single} {
			t.Errorf("%s runs with %q and %q", valueOf(c.Args, "--cell"), uri, single)
		}
		for _, s := range secrets {
			if strings.Contains(strings.Join(c.Args, " "), s) {
				t.Errorf("%q is in the command line %q", s, c.Args)
			}
		}
	}
	if b.run(t, "--dry-run", "-v") != 0 || !strings.Contains(b.out.String(), "UTR_URI='mongodb://***@h2/?loadBalanced=true' UTR_SINGLE_URI='mongodb://***@h3/?loadBalanced=true' utr run --engine reference") {
		t.Errorf("the plan does not tell the command lines\n%s%s", b.out.String(), b.err.String())
	}
}

// Cells on one cluster that is there already wait for each other; others do not.
func TestCellsShareAClusterInTurn(t *testing.T) {
	b := newNight(t, `clusters: [{name: a, uri: "mongodb://h/"}, {name: c, embedded: [single, sharded]}]
engines: [{name: e1, engine: reference}, {name: e2, engine: reference, jobs: 2}]
suites: {name: s, paths: ["%s"]}
`)
	var now, most, onA atomic.Int32
	meet := make(chan struct{})
	var once sync.Once
	for _, name := range []string{"a_e1_s", "a_e2_s", "c-single_e1_s", "c-single_e2_s", "c-sharded_e1_s", "c-sharded_e2_s"} {
		b.plays[name] = play{during: func(context.Context) {
			if strings.HasPrefix(name, "a_") {
				if onA.Add(1) > 1 {
					t.Error("two cells are on one cluster")
				}
				defer onA.Add(-1)
			}
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			if now.Load() == 3 {
				once.Do(func() { close(meet) })
			}
			select {
			case <-meet: // three at once were seen
			case <-time.After(20 * time.Second):
				t.Error("three cells do not run at once within 20 s")
			}
			now.Add(-1)
		}}
	}
	if code := b.run(t, "--jobs", "3"); code != 0 || len(b.runs) != 6 || most.Load() > 3 {
		t.Errorf("exit code %d, %d cells ran, %d at once\n%s%s", code, len(b.runs), most.Load(), b.out.String(), b.err.String())
	}
}

// One report has all cells; that of the folder's files, merged, says the same.
func TestMatrixReports(t *testing.T) {
	b := newNight(t, threeCells)
	b.plays["sharded_reference_s"] = play{statuses: []result.Status{result.Failed, result.Passed}, code: 1}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if code := b.run(t, "--json", path("j"), "--junit", path("u"), "--markdown", path("m"), "--html", path("h")); code != 1 {
		t.Fatalf("exit code %d\n%s", code, b.err.String())
	}
	for name, parts := range map[string][]string{
		"j": {`"cell":"single_reference_s"`, `"cell":"sharded_reference_s"`, `{"run":`},
		"u": {`testsuite name="suite.yml [sharded_reference_s, single 8.0]"`},
		"m": {"### Cells", `| ✘ sharded\_reference\_s | 1 | 1 |`},
		"h": {`["c","sharded_reference_s"]`},
	} {
		text, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("report %s lacks %s\n%.2000s", name, part, text)
			}
		}
	}
	table := func(out string) string {
		_, rest, _ := strings.Cut(out, "\ncell ")
		rest, _, _ = strings.Cut(rest, "total")
		return rest
	}
	first := table(b.out.String())
	files, _ := filepath.Glob(filepath.Join(b.results, "*.json"))
	b.out.Reset()
	if code := b.Main(t.Context(), append([]string{"merge"}, files...)); code != 1 {
		t.Errorf("merge: exit code %d\n%s", code, b.err.String())
	}
	sorted := func(text string) []string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		slices.Sort(lines)
		return lines
	}
	if first == "" || !slices.Equal(sorted(first), sorted(table(b.out.String()))) {
		t.Errorf("the matrix tells %s\nmerge tells %s", first, table(b.out.String()))
	}
	b.out.Reset()
	if code := b.Main(t.Context(), []string{"diff", path("j"), path("j")}); code != 0 || !strings.Contains(b.out.String(), "0 new failures") {
		t.Errorf("diff: exit code %d, %s%s", code, b.out.String(), b.err.String())
	}
}

// Parts of a night are put together; one that is missing is noticed.
func TestMatrixInParts(t *testing.T) {
	b := newNight(t, threeCells)
	dir := t.TempDir()
	var parts []string
	for _, i := range []string{"1", "2"} {
		parts = append(parts, filepath.Join(dir, i))
		b.results = filepath.Join(dir, "results"+i)
		for _, topology := range []string{"single", "replicaset", "sharded"} {
			statuses := []result.Status{result.Passed}
			if i == "2" {
				statuses = []result.Status{} // each test is in one part alone
			}
			b.plays[topology+"_reference_s"] = play{statuses: statuses}
		}
		if code := b.run(t, "--shard", i+"/2", "--json", dir+"/"+i); code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, b.out.String(), b.err.String())
		}
		if got := valueOf(b.runs[0].Args, "--shard"); got != i+"/2" {
			t.Errorf("a cell is given the part %q", got)
		}
	}
	for _, r := range []struct {
		reason string
		files  []string
		code   int
		tells  string
	}{
		{"both", parts, 0, "3 passed, 0 failed, 0 skipped"},
		{"the first", parts[:1], 1, "problem: shard 2/2 is missing"},
		{"one twice", []string{parts[0], parts[1], parts[1]}, 1, "shard 2/2 is there twice"},
		{"reports of cells", []string{dir + "/results1/single_reference_s.json", dir + "/results2/single_reference_s.json"}, 0, "1 passed"},
		{"reports of cells of one part", []string{dir + "/results1/single_reference_s.json", dir + "/results1/sharded_reference_s.json"}, 1, "problem: cell single_reference_s: shard 2/2 is missing"},
	} {
		b.out.Reset()
		if code := b.Main(t.Context(), append([]string{"merge"}, r.files...)); code != r.code || !strings.Contains(b.out.String(), r.tells) {
			t.Errorf("%s: exit code %d\n%s%s", r.reason, code, b.out.String(), b.err.String())
		}
	}
}

// One folder serves one process at a time.
func TestResultsAreLocked(t *testing.T) {
	b := newNight(t, threeCells)
	other, err := openResults(b.results)
	if err != nil {
		t.Fatal(err)
	}
	if code := b.run(t); code != ExitBroken || !strings.Contains(b.err.String(), "another utr is at it") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
	b.wantRan(t, "locked")
	other.close()
	if code := b.run(t); code != 0 {
		t.Errorf("after it was given back: exit code %d: %s", code, b.err.String())
	}
}

// Without --results the folder is named for the file; a report is not written
// over what a cell reads.
func TestMatrixFolder(t *testing.T) {
	for file, want := range map[string]string{"nightly.yml": "nightly.results", "ci/night.v2.yaml": "night.v2.results", "night": "night.results"} {
		if got := (&matrixFlags{results: new(string)}).folder(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	b := newNight(t, threeCells)
	if code := b.run(t, "--json", filepath.Join(filepath.Dir(b.file), "x"), "--html", b.file+"x"); code != 0 {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
	known := filepath.Join(filepath.Dir(b.file), "known.txt")
	write(t, known, "x # y\n")
	write(t, b.file, "clusters: [{embedded: single}]\nsuites: "+filepath.Join(filepath.Dir(b.file), "suite.yml")+"\ndefaults: {known-failing: "+known+"}\n")
	if code := b.run(t, "--tap", known); code != ExitUsage || !strings.Contains(b.err.String(), "written over") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

// What the file calls a setting is a flag of utr run.
func TestSettingsAreFlags(t *testing.T) {
	b := newNight(t, `
clusters:
- embedded: {topology: replicaset, server-version: 8.0, members: 3, mongoses: 2}
  auth: on
  tls: true
  server-api: 1
  uri-options: {compressors: zlib}
  known-failing: /dev/null
  retry-failed: 2
  policy: current
  backoff: none
  reseed: always
  run: x
  skip: y
  jobs: 2
  count: 3
  timeout: 1m
  fail-fast: true
  events: true
  cell-timeout: 2m
- {name: u, uri: {uri: "mongodb://h/?loadBalanced=true", single-uri: "mongodb://i/?loadBalanced=true"}}
- orchestration: {url: "http://h", topology: replicaset, clusters: 2, version: v8, files: dir}
- orchestration: {url: "http://h", cluster: sharded}
- name: l
  local: {dir: /opt, topology: sharded, members: 3, mongoses: 2, shards: 2}
suites: {name: s, paths: ["%s"]}
`)
	b.Engines["reference"] = func(EngineOptions) (engine.Engine, error) { return noEngine{}, nil }
	if code := b.run(t, "--dry-run", "-v"); code != 0 || !strings.Contains(b.out.String(), "5 cells") {
		t.Errorf("exit code %d\n%s%s", code, b.out.String(), b.err.String())
	}
}

func TestChildEnvironment(t *testing.T) {
	got := inherited([]string{"A=1", "B=2", "C=a=b"}, map[string]string{"B": "", "D": "4"})
	if want := []string{"A=1", "C=a=b", "D=4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
