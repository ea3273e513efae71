package report_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// Consecutive heartbeats are counted. All other events are listed.
func TestHeartbeatsAreCounted(t *testing.T) {
	var events []result.Event
	for i, kind := range ".o..o....o..." {
		e := result.Event{Sequence: int64(i + 1), Type: result.PoolReady}
		if kind == '.' {
			e = result.Event{Sequence: int64(i + 1), Type: result.ServerHeartbeatStarted}
		}
		events = append(events, e)
	}
	text := plain(report.TextOptions{Verbose: true},
		finished(&result.Verdict{Status: result.Failed,
			Evidence: result.Evidence{Clients: []result.ClientLog{{Client: "c", Events: events}}}}))
	_, text, _ = strings.Cut(text, "events of c\n")
	testkit.Equal(t, "the events", regexp.MustCompile(`\s+`).ReplaceAllString(text, " "),
		" 1 serverHeartbeatStartedEvent 2 poolReadyEvent "+
			"3 serverHeartbeatStartedEvent 4 serverHeartbeatStartedEvent 5 poolReadyEvent … 4 heartbeat events 10 poolReadyEvent … 3 heartbeat events ")
}

// A description cannot forge lines of a report.
func TestTitleIsOneLine(t *testing.T) {
	id := result.TestID{Suite: "s", Description: "a\n9 passed, 0 failed, 0 skipped"}
	text := plain(report.TextOptions{}, finished(&result.Verdict{Test: id, Status: result.Failed}))
	testkit.Contains(t, text, "failed s: a 9 passed")
	testkit.Equal(t, "a forged line", strings.Contains(text, "\n9 passed"), false)
}

// The last line has each verdict once, and is green only if the exit code is 0.
func TestLastLine(t *testing.T) {
	for _, r := range []struct {
		reason  string
		options report.TextOptions
		sum     result.Summary
		want    string
	}{
		{"always", report.TextOptions{}, result.Summary{}, "0 passed, 0 failed, 0 skipped"},
		{"known failures", report.TextOptions{}, result.Summary{Passed: 644, KnownFailing: 47, Skipped: 103},
			"644 passed, 47 known-failing (-v shows why), 0 failed, 103 skipped"},
		{"-v has shown why", report.TextOptions{Verbose: true}, result.Summary{KnownFailing: 1},
			"0 passed, 1 known-failing, 0 failed, 0 skipped"},
		{"all", report.TextOptions{Quiet: true},
			result.Summary{Passed: 1, KnownFailing: 2, Failed: 3, Broken: 4, Flaky: 5, Skipped: 13, NotRun: 7},
			"1 passed, 2 known-failing (-v shows why), 3 failed, 4 broken, 5 flaky, 6 skipped, 7 not run"},
		{"green", report.TextOptions{Color: true}, result.Summary{Passed: 1},
			"\x1b[32m1 passed, 0 failed, 0 skipped\x1b[0m"},
		{"a problem is not green", report.TextOptions{Color: true}, result.Summary{Passed: 1, Problems: []string{"p"}},
			"1 passed, 0 failed, 0 skipped"},
	} {
		lines := strings.Split(strings.TrimSpace(plain(r.options, result.RunFinished{Summary: r.sum})), "\n")
		testkit.Equal(t, r.reason, lines[len(lines)-1], r.want)
	}
}

// progress is a text report with a status line on a terminal of a width.
func progress(width int, now func() time.Time) report.Generator {
	return report.Progress(report.Text(report.TextOptions{}), func() int { return width }, now)
}

// lastStatus returns the status line at the end of a text.
func lastStatus(text string) string {
	line := text[strings.LastIndex(text, "\n")+1:]
	return line[strings.LastIndex("\x1b[K"+line, "\x1b[K"):]
}

// The status line neither wraps nor controls the terminal, whatever the names of
// tests.
func TestProgressFits(t *testing.T) {
	for _, r := range []struct{ reason, title, want string }{
		{"short", "short", "0/1 : short"},
		{"the longest that fits", "0123456789012", "0/1 : 0123456789012"},
		{"one character too long", "01234567890123", "0/1 : 012345678901…"},
		{"an escape sequence", "a\x1b[2Jb", "0/1 : a\uFFFD[2Jb"},
		{"a bidirectional control", "a\u202Eb", "0/1 : a\uFFFDb"},
		{"lines", "a\r\nb", "0/1 : a b"},
		{"wide characters", "日本語日本語日本", "0/1 : 日本語日本語…"},
		{"invalid UTF-8", "a\xff", "0/1 : a\uFFFD"},
	} {
		text := generate(progress(20, time.Now),
			[]result.Note{result.RunStarted{Total: 1},
				result.TestStarted{Test: result.TestID{Suite: " ", Description: r.title}}})
		testkit.Equal(t, r.reason, lastStatus(string(text)), r.want)
	}
}

// The status line fits any width and is removed at the end.
func TestProgressIsRemoved(t *testing.T) {
	want := plain(report.TextOptions{}, run()...)
	for width := range 60 {
		var kept strings.Builder
		for _, part := range strings.Split(string(generate(progress(width, time.Now), run())), "\r\x1b[K") {
			end := strings.LastIndex(part, "\n") + 1
			kept.WriteString(part[:end])
			testkit.Equal(t, fmt.Sprintf("%q fits into %d columns", part[end:], width),
				len([]rune(part[end:])) <= max(0, width-1), true)
		}
		testkit.Same(t, fmt.Sprintf("wiped, of %d columns", width), kept.String(), want)
	}
}

// status returns the status lines of a run of tests with the durations steps. A
// negative duration is a test that was skipped before it began.
func status(total, skipped int, steps []time.Duration) (lines []string) {
	now := time.Date(2026, 7, 8, 9, 0, 0, 0, time.UTC)
	g := progress(200, func() time.Time { return now })
	g(result.RunStarted{Total: total, Skipped: skipped})
	for i, step := range steps {
		v := &result.Verdict{Test: result.TestID{Suite: "s", Description: fmt.Sprint(i)}, Status: result.Skipped}
		if step >= 0 {
			g(result.TestStarted{Test: v.Test})
			v.Status, v.Started = result.Passed, now
			now = now.Add(step)
		}
		lines = append(lines, lastStatus(string(g(finished(v)))))
	}
	return lines
}

func repeat(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

// The time left is correct at a steady pace, and adapts to a new pace.
func TestTimeLeft(t *testing.T) {
	const skip = -1
	for _, r := range []struct {
		reason         string
		total, skipped int
		steps          []time.Duration
		want           string
	}{
		{"one test is too few", 100, 0, repeat(1, 10*time.Second), "1/100"},
		{"a few tests within a moment are too", 100, 0, repeat(20, 100*time.Millisecond), "20/100"},
		{"a steady run", 100, 0, repeat(20, time.Second), "20/100, 1.0/s, 2 min left"},
		{"a quick run", 100_000, 0, repeat(10_000, time.Millisecond), "10000/100000, 1000/s, 2 min left"},
		{"a slow run", 100, 0, repeat(10, 20*time.Second), "10/100, 3/min, 30 min left"},
		{"a run of hours", 10_000, 0, repeat(10, 10*time.Second), "10/10000, 6/min, 27.8 h left"},
		{"an endless run", 100_000_000, 0, repeat(10, 5*time.Second), "10/100000000, 12/min"},
		{"the last seconds come in steps of five", 20, 0, repeat(18, 3*time.Second), "18/20, 20/min, 10 s left"},
		{"nothing is left", 20, 0, repeat(20, time.Second), "20/20, 1.0/s"},
		{"tests that are skipped take no time", 1000, 900, append(repeat(900, skip), repeat(50, time.Second)...),
			"950/1000, 1.0/s, 50 s left"},
		{"tests to be skipped do not count", 1000, 900, repeat(50, time.Second), "50/1000, 1.0/s, 50 s left"},
		{"a quick beginning is forgotten after a minute", 1000, 0,
			append(repeat(500, time.Millisecond), repeat(70, time.Second)...), "570/1000, 1.0/s, 8 min left"},
		{"a slow beginning is forgotten too", 1000, 0,
			append(repeat(5, 20*time.Second), repeat(900, 100*time.Millisecond)...), "905/1000, 10/s, 10 s left"},
	} {
		lines := status(r.total, r.skipped, r.steps)
		got, _, _ := strings.Cut(lines[len(lines)-1], " s: ")
		testkit.Equal(t, r.reason, got, r.want)
	}
}

// fileNotes is a run of tests, each given as "file status".
func fileNotes(tests ...string) []result.Note {
	started := result.RunStarted{Total: len(tests), ByFile: map[string]int{}}
	notes := []result.Note{nil}
	var s result.Summary
	for _, test := range tests {
		file, status, _ := strings.Cut(test, " ")
		v := &result.Verdict{Test: result.TestID{File: file, Suite: "s", Description: "t"}, Status: result.Status(status),
			Duration: 600 * time.Millisecond}
		if status == "filtered" {
			v.Status, v.SkipKind = result.Skipped, result.SkipFilter
		}
		started.ByFile[file]++
		s.Add(v)
		notes = append(notes, finished(v))
	}
	notes[0] = started
	return append(notes, result.RunFinished{Summary: s})
}

func TestFiles(t *testing.T) {
	testkit.Transcript(t, "testdata/files.txt", func(_ *testing.T, input string) string {
		tests, timings := strings.CutPrefix(input, "timings: ")
		tests, uncounted := strings.CutPrefix(tests, "uncounted: ")
		notes := fileNotes(strings.Split(strings.NewReplacer(`\x1b`, "\x1b", `\n`, "\n").Replace(tests), ", ")...)
		if uncounted {
			notes[0] = result.RunStarted{}
		}
		return string(generate(report.Files(report.Text(report.TextOptions{}), timings), notes))
	})
}

func TestSlowest(t *testing.T) {
	var notes []result.Note
	for i := range 30 {
		id := result.TestID{Suite: "s", Description: fmt.Sprintf("t%d", i)}
		notes = append(notes, finished(&result.Verdict{Test: id, Status: result.Passed,
			Duration: time.Duration(i*7%30) * time.Second}))
	}
	notes = append(notes, finished(&result.Verdict{Status: result.Skipped, Duration: time.Hour}), result.RunFinished{})
	for o, want := range map[report.TextOptions]int{
		// 30 exist
		{Verbose: true}: 0, {Timings: true}: 5, {Slowest: 3}: 3, {Slowest: 100}: 30, {Timings: true, Slowest: 7}: 7,
	} {
		text := plain(o, notes...)
		testkit.Equal(t, fmt.Sprintf("%+v: tests", o), strings.Count(text, "  slow: "), want)
		testkit.Equal(t, "the slowest is first", want == 0 ||
			strings.Index(text, "slow: 29s s: t17") <= strings.Index(text, "slow: 28s"), true)
	}
}

// The status line of a matrix fits, and estimates the time left from the cells that ended and the tests of running
// ones.
func TestCellsStatus(t *testing.T) {
	two := []report.RunningCell{{Name: "a", Done: 5, Red: 2, Total: 10}, {Name: "b"}}
	for _, r := range []struct {
		reason                           string
		columns, began, ended, all, reds int
		running                          []report.RunningCell
		took                             time.Duration
		want                             string
	}{
		{"the beginning", 80, 0, 0, 4, 0, nil, 0, "0/4 cells"},
		{"running cells, with red tests of ended ones", 80, 0, 1, 4, 3, two, time.Second, "1/4 cells, 5 failed a 5/10 b"},
		{"one cell and a half in 15 s", 80, 0, 1, 4, 0, two[:1], 15 * time.Second, "1/4 cells, 2 failed, 25 s left a 5/10"},
		{"cells that an earlier run finished took no time", 80, 2, 3, 4, 0, nil, 60 * time.Second, "3/4 cells, 60 s left"},
		{"more tests than announced", 80, 0, 0, 1, 0, []report.RunningCell{{Name: "a", Done: 9, Total: 3}}, time.Minute,
			"0/1 cells a 9/3"},
		{"a narrow terminal", 20, 0, 0, 4, 0, two, 0, "0/4 cells, 2 faile…"},
		{"no terminal", 0, 0, 0, 4, 0, two, 0, ""},
	} {
		testkit.Equal(t, r.reason, report.CellsStatus(r.columns, r.began, r.ended, r.all, r.reds, r.running, r.took), r.want)
	}
}
