package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/xeipuuv/gojsonschema"
)

var update = flag.Bool("update", false, "write the golden files anew")

func generate(g report.Generator, notes []result.Note) []byte {
	var out bytes.Buffer
	r := report.New("memory", g, &out)
	for _, n := range notes {
		r.Note(n)
	}
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for file, g := range map[string]report.Generator{
		"quiet.txt":     report.Text(report.TextOptions{}),
		"verbose.txt":   report.Text(report.TextOptions{Verbose: true, Timings: true}),
		"color.txt":     report.Text(report.TextOptions{Verbose: true, Color: true}),
		"records.json":  report.JSON(),
		"junit.xml":     report.JUnit(),
		"run.tap":       report.TAP(),
		"summary.md":    report.Markdown(),
		"annotated.txt": report.Annotated(report.Text(report.TextOptions{})),
		"badge.svg":     report.Badge(),
		"progress.txt":  report.Progress(report.Text(report.TextOptions{}), report.ProgressOptions{Width: func() int { return 40 }}),
	} {
		t.Run(file, func(t *testing.T) {
			got := generate(g, run())
			path := filepath.Join("testdata", file)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-golden +got)\n%s", diff)
			}
		})
	}
}

func lines(b []byte) []string { return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") }

func TestLastLine(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		all := lines(generate(report.Text(report.TextOptions{Verbose: verbose, Timings: verbose, Color: verbose}), run()))
		if got := all[len(all)-1]; got != "3 passed, 1 failed, 5 skipped" {
			t.Errorf("the last line is %q", got)
		}
		if got := all[len(all)-2]; got != "1 broken, 1 known-failing" {
			t.Errorf("the line before is %q", got)
		}
	}
	got := string(generate(report.Text(report.TextOptions{}), []result.Note{result.RunFinished{Summary: result.Summary{Passed: 7}}}))
	if got != "7 passed, 0 failed, 0 skipped\n" {
		t.Errorf("a run where all is well says %q", got)
	}
}

// Every record keeps to the published schema, and the schema is strict enough
// that a field it does not know would be noticed.
func TestRecordsKeepToSchema(t *testing.T) {
	schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(report.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	judge := func(line string) bool {
		r, err := schema.Validate(gojsonschema.NewStringLoader(line))
		if err != nil {
			t.Fatal(err)
		}
		if !r.Valid() {
			t.Log(r.Errors())
		}
		return r.Valid()
	}
	records := lines(generate(report.JSON(), run()))
	if len(records) != 11 {
		t.Errorf("%d records for 11 verdicts", len(records))
	}
	for _, line := range records {
		if !judge(line) {
			t.Errorf("not valid: %s", line)
		}
	}
	if judge(strings.Replace(records[0], `"status":"passed"`, `"status":"passed","more":1`, 1)) {
		t.Error("the schema lets an unknown field pass")
	}
	if judge(strings.Replace(records[0], `"status":"passed"`, `"status":"fine"`, 1)) {
		t.Error("the schema lets an unknown status pass")
	}
}

// JSON has no NaN; the verdict is told all the same.
func TestRecordOfUnwritableNumber(t *testing.T) {
	v := &result.Verdict{Status: result.Failed, Operations: []result.OperationLog{{Outcome: result.Outcome{Decisions: []result.Decision{{DelayMS: math.NaN()}}}}}}
	got := string(generate(report.JSON(), []result.Note{result.TestFinished{Verdict: v}}))
	if !strings.Contains(got, `"status":"failed"`) || !strings.Contains(got, "details left out") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
}

type broken struct{ after int }

func (b *broken) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriteError(t *testing.T) {
	r := report.New("out.json", report.JSON(), &broken{after: 2})
	for _, n := range run() {
		r.Note(n)
	}
	if r.Err() == nil || r.Err().Error() != "writing the report to out.json: disk full" {
		t.Errorf("the error is %v", r.Err())
	}
	fine := report.New("out.json", report.JSON(), &broken{after: 1000})
	for _, n := range run() {
		fine.Note(n)
	}
	if fine.Err() != nil {
		t.Error(fine.Err())
	}
}

func TestQuote(t *testing.T) {
	for want, in := range map[string][]string{
		"utr run":            {"utr", "run"},
		"''":                 {""},
		`'it'\''s'`:          {"it's"},
		`'a b' '$x' 'y*' -v`: {"a b", "$x", "y*", "-v"},
	} {
		if got := report.Quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// A progress line never wraps, and nothing of it is left at the end.
func TestProgressIsGone(t *testing.T) {
	text := string(generate(report.Progress(report.Text(report.TextOptions{}), report.ProgressOptions{Width: func() int { return 30 }}), run()))
	for _, part := range strings.Split(text, "\r\x1b[K")[1:] {
		last := part[strings.LastIndex(part, "\n")+1:]
		if n := len([]rune(last)); n > 29 {
			t.Errorf("%d columns: %q", n, last)
		}
	}
	plain := string(generate(report.Text(report.TextOptions{}), run()))
	var kept strings.Builder
	for i, part := range strings.Split(text, "\r\x1b[K") {
		if i == 0 {
			kept.WriteString(part[:strings.LastIndex(part, "\n")+1])
			continue
		}
		kept.WriteString(part[:strings.LastIndex(part, "\n")+1])
	}
	if diff := cmp.Diff(plain, kept.String()); diff != "" {
		t.Errorf("(-without progress +with, wiped)\n%s", diff)
	}
}

// docs/reports.md describes every field of the record.
func TestReportsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "reports.md"))
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]any
	}
	var s struct {
		object
		Definitions map[string]object
	}
	if err := json.Unmarshal(report.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	sections := map[string]object{"The record": s.object}
	for name, o := range s.Definitions {
		sections[name] = o
	}
	for name, o := range sections {
		_, section, found := strings.Cut(string(page), "\n### "+name+"\n")
		if !found {
			t.Errorf("there is no section %s", name)
		}
		section, _, _ = strings.Cut(section, "\n##")
		for field := range o.Properties {
			if !strings.Contains(section, "| `"+field+"` |") {
				t.Errorf("%s: %s is missing", name, field)
			}
		}
		if rows := strings.Count(section, "| `"); rows != len(o.Properties) {
			t.Errorf("%s: %d rows, %d fields", name, rows, len(o.Properties))
		}
	}
}

// Heartbeats between other events are counted, and nothing else is left out.
func TestHeartbeatsAreCounted(t *testing.T) {
	beat := func(n int64) result.Event {
		return result.Event{Sequence: n, Type: result.ServerHeartbeatStarted, SDAM: &result.SDAMEvent{}}
	}
	other := func(n int64) result.Event {
		return result.Event{Sequence: n, Type: result.PoolReady, Pool: &result.PoolEvent{}}
	}
	v := &result.Verdict{Status: result.Failed, Clients: []result.ClientLog{{Client: "c", Events: []result.Event{
		beat(1), other(2), beat(3), beat(4), other(5), beat(6), beat(7), beat(8), beat(9), other(10), beat(11), beat(12), beat(13)}}}}
	text := string(generate(report.Text(report.TextOptions{}), []result.Note{result.TestFinished{Verdict: v}}))
	for _, want := range []string{"  1 serverHeartbeatStarted", "  3 serverH", "  4 serverH", " 10 poolReady", "… 4 heartbeat events", "… 3 heartbeat events"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "  7 ") || strings.Count(text, "poolReady") != 3 {
		t.Error(text)
	}
}

// Two runs that saw the same say the same, whatever time they took: only
// Timings tells times.
func TestTimesOnlyWithTimings(t *testing.T) {
	slower := func(notes []result.Note) []result.Note {
		for i, n := range notes {
			switch n := n.(type) {
			case result.DeploymentReady:
				n.Took += 3 * time.Second
				notes[i] = n
			case result.TestFinished:
				v := *n.Verdict
				v.Duration += 7 * time.Second
				for i := range v.Operations {
					v.Operations[i].Duration += time.Second
				}
				notes[i] = result.TestFinished{Verdict: &v}
			case result.RunFinished:
				n.Summary.Duration += time.Minute
				notes[i] = n
			}
		}
		return notes
	}
	for _, r := range []struct {
		reason  string
		options report.TextOptions
		same    bool
	}{
		{"quiet", report.TextOptions{}, true},
		{"a line for every test", report.TextOptions{Verbose: true}, true},
		{"times are wanted", report.TextOptions{Timings: true}, false},
	} {
		fast, slow := generate(report.Text(r.options), run()), generate(report.Text(r.options), slower(run()))
		if bytes.Equal(fast, slow) != r.same {
			t.Errorf("%s: (-fast +slow)\n%s", r.reason, cmp.Diff(string(fast), string(slow)))
		}
	}
}

// A description cannot forge lines of a report.
func TestTitleIsOneLine(t *testing.T) {
	id := result.TestID{Suite: "s", Description: "a\n9 passed, 0 failed, 0 skipped"}
	text := string(generate(report.Text(report.TextOptions{}), []result.Note{result.TestFinished{Verdict: &result.Verdict{Test: id, Status: result.Failed}}}))
	if strings.Contains(text, "\n9 passed") || !strings.Contains(text, "failed s: a 9 passed") {
		t.Errorf("%q", text)
	}
}

// The status line neither wraps nor steers the terminal, whatever tests are
// called.
func TestProgressFits(t *testing.T) {
	for _, r := range []struct{ reason, title, want string }{
		{"it fits", "short", "0/1 : short"},
		{"it fits just so", "0123456789012", "0/1 : 0123456789012"},
		{"it is one too long", "01234567890123", "0/1 : 012345678901…"},
		{"an escape sequence", "a\x1b[2Jb", "0/1 : a\uFFFD[2Jb"},
		{"the direction of writing", "a\u202Eb", "0/1 : a\uFFFDb"},
		{"lines", "a\r\nb", "0/1 : a b"},
		{"wide characters", "日本語日本語日本", "0/1 : 日本語日本語…"},
		{"bytes that are no text", "a\xff", "0/1 : a\uFFFD"},
	} {
		notes := []result.Note{result.RunStarted{Total: 1}, result.TestStarted{Test: result.TestID{Suite: " ", Description: r.title}}}
		text := string(generate(report.Progress(report.Text(report.TextOptions{}), report.ProgressOptions{Width: func() int { return 20 }}), notes))
		got := text[strings.LastIndex(text, "\x1b[K")+len("\x1b[K"):]
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}
