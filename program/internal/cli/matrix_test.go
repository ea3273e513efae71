package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/night"
	"github.com/unified-test-runner/utr/result"
)

// nightBench is a bench with cells that do what plays says, by name, a matrix night.yml and its night.results.
type nightBench struct {
	*bench
	plays map[string]play

	mu   sync.Mutex
	runs []night.Child // in the order of their start
}

// play is what a cell does.
type play struct {
	statuses []result.Status // of its tests; nil for one that passed
	problems []string
	code     int
	died     error
	says     string
	cut      string // lost of the report: "everything", "end", "line"
	takes    time.Duration
	during   func(ctx context.Context) // called first
}

const threeCells = `clusters: [{embedded: {topology: [single, replicaset, sharded]}}]
suites: {name: s, paths: [suite.yml]}
`

// lastNight is when all cells began.
var lastNight = time.Date(2026, 7, 3, 2, 0, 4, 0, time.UTC)

func newNight(t *testing.T, file string) *nightBench {
	t.Helper()
	b := &nightBench{bench: newBench(t), plays: map[string]play{}}
	write(t, "night.yml", file)
	b.Child = func(ctx context.Context, c night.Child) (int, int, error) {
		cell := valueOf(c.Args, "--cell")
		b.mu.Lock()
		b.runs = append(b.runs, c)
		p := b.plays[cell]
		b.mu.Unlock()
		if p.during != nil {
			p.during(ctx)
		}
		if p.says != "" {
			_, _ = c.Output.Write([]byte(p.says + "\n"))
		}
		time.Sleep(p.takes)
		if p.statuses == nil {
			p.statuses = []result.Status{result.Passed}
		}
		notes := []result.Note{result.RunStarted{Time: lastNight, Engine: "reference 1",
			Servers: deployment.Servers(noSource{b.bench}.Offers()), Cell: cell, Shard: valueOf(c.Args, "--shard")}}
		for i, s := range p.statuses {
			n := finished(fmt.Sprintf("test %d", i), s)
			n.Verdict.Test.Cell, n.Verdict.Test.Deployment = cell, "single 8.0"
			notes = append(notes, n)
		}
		s := result.Summary{Problems: p.problems, Duration: time.Second}
		if ctx.Err() != nil {
			s.Interrupt("interrupted")
		}
		text := jsonReport(append(notes, result.RunFinished{Summary: s})...)
		switch p.cut {
		case "everything":
			return 0, p.code, p.died
		case "end":
			text = text[:strings.LastIndex(strings.TrimSpace(text), "\n")+1]
		case "line":
			text = text[:len(text)-20]
		}
		return 0, p.code, errors.Join(p.died, os.WriteFile(valueOf(c.Args, "--json"), []byte(text), 0o644))
	}
	return b
}

func valueOf(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// ran returns the names and the shards of the cells that ran.
func (b *nightBench) ran() (cells []string) {
	for _, c := range b.runs {
		cells = append(cells, strings.TrimSpace(valueOf(c.Args, "--cell")+" "+valueOf(c.Args, "--shard")))
	}
	return cells
}

// run runs the matrix and checks its exit code, output and cells.
func (b *nightBench) run(t *testing.T, reason, flags string, code int, want string, cells ...string) {
	t.Helper()
	b.runs = nil
	b.expect(t, reason, "matrix night.yml "+flags, code, want)
	ran := b.ran()
	if slices.Sort(ran); !slices.Equal(ran, cells) {
		t.Errorf("%s: %q ran, want %q\n%s%s", reason, ran, cells, b.out.String(), b.err.String())
	}
}

// playOf parses what a cell does: the status of its tests, and its own end.
func (b *nightBench) playOf(words []string) (p play) {
	for _, word := range words {
		switch verb, text, _ := strings.Cut(word, " "); verb {
		case "exits":
			p.code, _ = strconv.Atoi(text)
		case "dies":
			p.died = errors.New("its process died: signal: killed")
		case "has":
			p.problems = []string{text}
		case "says":
			p.says = strings.ReplaceAll(text, `\n`, "\n")
		case "takes":
			p.takes, _ = time.ParseDuration(text)
		case "loses":
			p.cut = text
		case "runs": // nothing
			p.statuses = []result.Status{}
		case "hangs":
			p.during = func(ctx context.Context) { <-ctx.Done() }
		case "interrupts":
			late, _ := time.ParseDuration(strings.TrimPrefix(text, "after "))
			p.during = func(ctx context.Context) { time.Sleep(late); b.interrupt(); <-ctx.Done() }
		default:
			p.statuses = append(p.statuses, result.Status(verb))
		}
	}
	return p
}

// The folder of results is named after the file, and used by one process.
func TestFolderOfResults(t *testing.T) {
	for file, want := range map[string]string{"ci/night.v2.yaml": "night.v2.results", "night": "night.results"} {
		testkit.Equal(t, "the folder of results of "+file, (&matrixRun{}).resultsPath(file), want)
	}
	b := newNight(t, threeCells)
	other, err := night.OpenResults(t.Context(), "night.results", 0, nil)
	testkit.Check(t, err)
	b.run(t, "another process has the folder", "", ExitBroken, "another utr is using it")
	other.Close()
	b.run(t, "the other process has ended", "", 0, "", "replicaset_reference_s", "sharded_reference_s",
		"single_reference_s")
}

// Connection strings and options reach a cell through its standard input. Those of this process do not reach cells.
// Process listings, output and files contain no secrets.
func TestCellsKeepSecrets(t *testing.T) {
	b := newNight(t, `clusters:
- {name: a, uri: "${A}"} # with a secret behind percent signs
- {name: b, uri: {uri: "${B}", single-uri: "${B1}"}}
- {name: c, embedded: single, uri-options: {tlsCertificateKeyFilePassword: "${C}"}}
- {name: d, orchestration: {url: "${D}", cluster: single}}
suites: {name: s, paths: [suite.yml]}
`)
	const lb = "/?loadBalanced=true"
	for name, value := range map[string]string{"A": "mongodb://me:geheim%21@h1/?serverSelectionTimeoutMS=1",
		"B": "mongodb://me:geheimer@h2" + lb,
		"B1": "mongodb://me:geheimst@h3" +
			lb, "C": "geheim und mehr", "D": "http://me:geheim7@h7", envURI: "mongodb://other:geheim9@h9/", envSingleURI: "mongodb://other:geheim8@h8/"} {
		b.env[name] = value
	}
	b.plays["a_reference_s"] = play{code: 3, cut: "nothing", says: "utr: auth with geheim! or geheim%21 failed"}
	b.run(t, "all", "-v --html h --json j --junit u --markdown m --tap t", 3, "", "a_reference_s", "b_reference_s",
		"c_reference_s", "d_reference_s")
	texts := map[string]string{"standard output": b.out.String(), "standard error": b.err.String()}
	for _, dir := range []string{".", "night.results"} {
		maps.Copy(texts, contentsOf(t, dir))
	}
	testkit.Equal(t, "enough texts are checked", len(texts) >= 2+5+2+3, true)
	for what, text := range texts {
		lacks(t, what, text, "geheim")
	}
	want := map[string][2]string{"a_reference_s": {b.env["A"], ""}, "b_reference_s": {b.env["B"], b.env["B1"]},
		"c_reference_s": {"", ""}, "d_reference_s": {"", ""}}
	for _, c := range b.runs {
		uri, single := valueOf(c.More, "--uri"), valueOf(c.More, "--single-uri")
		if want[valueOf(c.Args, "--cell")] != [2]string{uri, single} ||
			strings.Contains(strings.Join(c.Args, " "), "geheim") {
			t.Errorf("%q runs with %q and %q", c.Args, uri, single)
		}
	}
	b.run(t, "the plan", "--dry-run -v", 0,
		"utr run --uri 'mongodb://***@h2/?loadBalanced=true' --single-uri 'mongodb://***@h3/?loadBalanced=true' --engine reference … "+
			"'tlsCertificateKeyFilePassword=***' … --orchestration 'http://***@h7'")
	lacks(t, "the plan", b.out.String(), "geheim")
	testkit.Equal(t, "the environment of a child", childEnvironment([]string{"A=1", envURI + "=2", "C=a=b"}),
		[]string{"A=1", "C=a=b"})
}

// Cells share a cluster according to its servers, however the flags spell it.
func TestResources(t *testing.T) {
	const service = "http://ann:pw@h:8889"
	uses := func(flags ...string) *cellRun { // names and values in turn
		f := newFlags(&invocation{program: New()}, &cobra.Command{})
		c := &cellRun{flags: declareRun(f)}
		for i := 0; i < len(flags); i += 2 {
			testkit.Check(t, f.Set(flags[i], flags[i+1]))
		}
		return c
	}
	existing := uses("orchestration", service, "cluster", "id:a")
	for _, r := range []struct {
		reason string
		a, b   *cellRun
		shared bool
	}{
		{"other users and options", uses("uri", "mongodb://H/?appName=a"), uses("uri", "mongodb://ann:pw@h:27017/db"), true},
		{"one of the hosts", uses("uri", "mongodb://a,b"), uses("uri", "mongodb://b,c"), true},
		{"other ports", uses("uri", "mongodb://a:1"), uses("uri", "mongodb://a:2"), false},
		{"a name in DNS", uses("uri", "mongodb+srv://a.example.com/"),
			uses("uri", "mongodb+srv://a.example.com/?ssl=true"), true},
		{"a cluster of a service", existing, uses("orchestration", "http://h:8889/v1/", "cluster", "id:a"), true},
		{"another one", existing, uses("orchestration", service, "cluster", "id:b"), false},
		{"one of another service", existing, uses("orchestration", "http://h2:8889", "cluster", "id:a"), false},
		{"clusters to be created", uses("orchestration", service, "cluster", "single"),
			uses("orchestration", service, "cluster", "single"), false},
		{"embedded deployments", uses("topology", "single"), uses("topology", "single"), false},
	} {
		shared := slices.ContainsFunc(r.a.resources(),
			func(name string) bool { return slices.Contains(r.b.resources(), name) })
		testkit.Equal(t, r.reason, shared, r.shared)
	}
}

// Arguments from a file or standard input are not changed.
func TestArgumentsOfAFile(t *testing.T) {
	more := []string{"--uri=mongodb://me:geheim@h1/", "--run", "first\n", "", `"quoted"`, "päth"}
	b := newBench(t)
	b.Stdin = strings.NewReader(jsonLines(more))
	got, err := b.expand([]string{"run", "@-", "--verbose"})
	testkit.Check(t, err)
	testkit.Equal(t, "the arguments", fmt.Sprintf("%q", got),
		fmt.Sprintf("%q", append([]string{"run", "--verbose"}, more...)))
}
