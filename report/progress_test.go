package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// a clock that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// status gives the status lines of a run. Each test takes as long as steps
// says; a negative step is a test that was skipped before it began.
func status(total, skipped int, steps []time.Duration) (lines []string) {
	c := &clock{time.Date(2026, 7, 8, 9, 0, 0, 0, time.UTC)}
	g := report.Progress(report.Text(report.TextOptions{}), report.ProgressOptions{Width: func() int { return 200 }, Now: c.now})
	g(result.RunStarted{Total: total, Skipped: skipped})
	for i, step := range steps {
		v := &result.Verdict{Test: result.TestID{Suite: "s", Description: fmt.Sprint(i)}, Status: result.Skipped}
		if step >= 0 {
			g(result.TestStarted{Test: v.Test})
			v.Status, v.Began = result.Passed, c.at
			c.at = c.at.Add(step)
		}
		text := string(g(result.TestFinished{Verdict: v}))
		lines = append(lines, text[strings.LastIndex(text, "\x1b[K")+len("\x1b[K"):])
	}
	return lines
}

func repeat(n int, d time.Duration) (steps []time.Duration) {
	for range n {
		steps = append(steps, d)
	}
	return steps
}

// What is said of the time left is right where tests go on as they went, and
// becomes right where they do not.
func TestTimeLeft(t *testing.T) {
	const skip = -1
	for _, r := range []struct {
		reason         string
		total, skipped int
		steps          []time.Duration
		want           string
	}{
		{"one test says nothing", 100, 0, repeat(1, 10*time.Second), "1/100"},
		{"nor do a few within a moment", 100, 0, repeat(20, 100*time.Millisecond), "20/100"},
		{"a steady run", 100, 0, repeat(20, time.Second), "20/100, 1.0/s, 2 min left"},
		{"a quick one", 100_000, 0, repeat(10_000, time.Millisecond), "10000/100000, 1000/s, 2 min left"},
		{"a slow one", 100, 0, repeat(10, 20*time.Second), "10/100, 3/min, 30 min left"},
		{"one that takes hours", 10_000, 0, repeat(10, 10*time.Second), "10/10000, 6/min, 27.8 h left"},
		{"one without end", 100_000_000, 0, repeat(10, 5*time.Second), "10/100000000, 12/min"},
		{"the last seconds are told in steps of five", 20, 0, repeat(18, 3*time.Second), "18/20, 20/min, 10 s left"},
		{"nothing is left", 20, 0, repeat(20, time.Second), "20/20, 1.0/s"},
		{"tests that are skipped take no time", 1000, 900, append(repeat(900, skip), repeat(50, time.Second)...), "950/1000, 1.0/s, 50 s left"},
		{"those to be skipped are not waited for", 1000, 900, repeat(50, time.Second), "50/1000, 1.0/s, 50 s left"},
		{"a quick beginning is forgotten after a minute", 1000, 0, append(repeat(500, time.Millisecond), repeat(70, time.Second)...), "570/1000, 1.0/s, 8 min left"},
		{"and so is a slow one", 1000, 0, append(repeat(5, 20*time.Second), repeat(900, 100*time.Millisecond)...), "905/1000, 10/s, 10 s left"},
	} {
		lines := status(r.total, r.skipped, r.steps)
		if got, _, _ := strings.Cut(lines[len(lines)-1], " s: "); got != r.want {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}

// The estimate of a run whose tests differ keeps near the truth once a tenth
// has run, and never says that time was left when none was.
func TestTimeLeftOfUnevenTests(t *testing.T) {
	var steps []time.Duration
	var all time.Duration
	for i := range 2000 {
		d := time.Duration(1+i*7919%13) * 20 * time.Millisecond
		if i%50 == 0 {
			d = 2 * time.Second
		}
		steps, all = append(steps, d), all+d
	}
	left := regexp.MustCompile(`(\d+) (s|min) left`)
	past := time.Duration(0)
	for i, line := range status(len(steps), 0, steps) {
		past += steps[i]
		m := left.FindStringSubmatch(line)
		if i < len(steps)/10 || i == len(steps)-1 {
			if i == len(steps)-1 && m != nil {
				t.Errorf("at the end: %q", line)
			}
			continue
		}
		if m == nil {
			t.Fatalf("after %d tests there is no estimate: %q", i+1, line)
		}
		var n int
		_, _ = fmt.Sscan(m[1], &n) // digits
		told, slack := time.Duration(n)*time.Second, 6*time.Second
		if m[2] == "min" {
			told, slack = time.Duration(n)*time.Minute, time.Minute
		}
		truth := all - past
		if told < truth*3/4-slack || told > truth*5/4+slack {
			t.Errorf("after %d tests %v are left, told were %v", i+1, truth, told)
		}
	}
}

// Whatever the width, the line keeps to it.
func TestProgressIsNarrow(t *testing.T) {
	for width := range 60 {
		c := &clock{time.Date(2026, 7, 8, 9, 0, 0, 0, time.UTC)}
		g := report.Progress(report.Text(report.TextOptions{}), report.ProgressOptions{Width: func() int { return width }, Now: c.now})
		g(result.RunStarted{Total: 1000})
		for i := range 30 {
			c.at = c.at.Add(time.Second)
			text := string(g(result.TestFinished{Verdict: &result.Verdict{Status: result.Broken, Began: c.at, Test: result.TestID{Description: fmt.Sprint(i)}}}))
			line := text[strings.LastIndex(text, "\n")+1:]
			if wiped := strings.LastIndex(line, "\x1b[K"); wiped >= 0 {
				line = line[wiped+len("\x1b[K"):]
			}
			if n := len([]rune(line)); n > max(0, width-1) {
				t.Fatalf("%d columns of %d: %q", n, width, line)
			}
		}
	}
}

// fileNotes is a run of tests, each named by its file and how it ended.
func fileNotes(tests ...string) []result.Note {
	started := result.RunStarted{Total: len(tests), ByFile: map[string]int{}}
	notes := []result.Note{nil}
	var s result.Summary
	for _, test := range tests {
		file, status, _ := strings.Cut(test, " ")
		v := &result.Verdict{Test: result.TestID{File: file, Suite: "s", Description: "t"}, Status: result.Status(status), Duration: 600 * time.Millisecond}
		if status == "filtered" {
			v.Status, v.SkipKind = result.Skipped, result.SkipFilter
		}
		started.ByFile[file]++
		s.Add(v)
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	notes[0] = started
	return append(notes, result.RunFinished{Summary: s})
}

func TestFiles(t *testing.T) {
	for _, r := range []struct {
		reason  string
		timings bool
		notes   []result.Note
		want    []string
	}{
		{"a line when the last test of a file has ended", false, fileNotes("a.yml passed", "b.yml passed", "a.yml skipped", "a.yml known-failing", "b.yml passed"),
			[]string{"a.yml: 1 passed, 1 known-failing, 1 skipped", "b.yml: 2 passed"}},
		{"what is red comes first", false, fileNotes("a.yml passed", "a.yml failed", "a.yml broken", "b.yml flaky"),
			[]string{"a.yml: 1 failed, 1 broken, 1 passed", "b.yml: 1 flaky"}},
		{"with times", true, fileNotes("a.yml passed", "b.yml passed", "a.yml passed"), []string{"b.yml: 1 passed (600ms)", "a.yml: 2 passed (1.2s)"}},
		{"one file: the end says it all", false, fileNotes("a.yml passed", "a.yml failed"), nil},
		{"a file that was filtered out", false, fileNotes("a.yml filtered", "b.yml passed", "b.yml filtered", "a.yml filtered"), []string{"b.yml: 1 passed, 1 skipped"}},
		{"a name that steers a terminal", false, fileNotes("a\x1b[2J.yml passed", "b\nc.yml passed"), []string{"a\uFFFD[2J.yml: 1 passed", "b c.yml: 1 passed"}},
		{"nobody knows how many there are", false, append([]result.Note{result.RunStarted{}}, fileNotes("a.yml passed", "b.yml passed")[1:]...), nil},
	} {
		plain := generate(report.Text(report.TextOptions{}), r.notes)
		text := string(generate(report.Files(report.Text(report.TextOptions{}), r.timings), r.notes))
		var got []string
		for _, line := range lines([]byte(text)) {
			if regexp.MustCompile(`^\S.*\.yml: \d`).MatchString(line) {
				got = append(got, line)
				text = strings.Replace(text, line+"\n", "", 1)
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", r.want) {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
		if text != string(plain) {
			t.Errorf("%s: the rest of the report changed: %q, was %q", r.reason, text, plain)
		}
	}
}

func TestSlowest(t *testing.T) {
	var notes []result.Note
	for i := range 30 {
		notes = append(notes, result.TestFinished{Verdict: &result.Verdict{Test: result.TestID{Suite: "s", Description: fmt.Sprintf("t%d", i)}, Status: result.Passed, Duration: time.Duration(i*7%30) * time.Second}})
	}
	notes = append(notes, result.TestFinished{Verdict: &result.Verdict{Status: result.Skipped, Duration: time.Hour}}, result.RunFinished{})
	for _, r := range []struct {
		reason  string
		options report.TextOptions
		want    int
	}{
		{"no times", report.TextOptions{Verbose: true}, 0},
		{"times", report.TextOptions{Timings: true}, 5},
		{"some", report.TextOptions{Slowest: 3}, 3},
		{"more than there are", report.TextOptions{Slowest: 100}, 30},
		{"times, and some", report.TextOptions{Timings: true, Slowest: 7}, 7},
	} {
		text := string(generate(report.Text(r.options), notes))
		if got := strings.Count(text, "  slow: "); got != r.want || r.want > 0 && strings.Index(text, "slow: 29s s: t17") > strings.Index(text, "slow: 28s") {
			t.Errorf("%s: %d tests\n%s", r.reason, got, text)
		}
	}
}
