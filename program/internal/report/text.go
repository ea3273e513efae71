package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// TextOptions are the options of Text.
type TextOptions struct {
	// Verbose adds a line for every test and every deployment.
	Verbose bool
	// Quiet leaves only the list of failures, the problems and the counts at the end.
	Quiet bool
	// Timings adds durations, totals by phase and by file, and the slowest tests. Without it, equal runs have equal
	// reports.
	Timings bool
	// Slowest is the number of slowest tests to list at the end; 0 means five with Timings and none without.
	Slowest int
	// Color colors verdicts and differences with ANSI escape sequences.
	Color bool
	// Past is for a run that has ended: its failures are explained at the end, the most frequent causes first.
	Past bool
}

// Text explains a failure of each cause, up to some, with Verbose all of them with their evidence. At the end it lists
// the failures, by cause if there are many, new ones first if earlier runs are given. The last line has the counts.
func Text(o TextOptions, earlier ...*EarlierRun) Generator {
	if o.Timings && o.Slowest == 0 {
		o.Slowest = slowestTests
	}
	t := &text{options: o, causes: NewCauses(earlier), skips: map[string]int{}, slowest: slowest{limit: o.Slowest}}
	if o.Timings {
		t.byFile = map[string]*result.Timings{}
	}
	return hooks{start: t.start, ready: t.ready, test: t.finished, finish: t.summary}.generator(&t.buffer)
}

// The limits of the text report; the JSON report is complete.
const (
	briefWidth      = 300 // characters of a command, reply or value
	slowestTests    = 5
	skipReasons     = 10
	shownHeartbeats = 2 // consecutive heartbeat events

	explainedCauses     = 10 // of a run
	explainedPastCauses = 3  // of a run that has ended
	listedCauses        = 10
	skipReasonsIfRed    = 3 // so that the failures stay on the screen
)

type text struct {
	options    TextOptions
	buffer     bytes.Buffer
	started    result.RunStarted
	skips      map[string]int // reason → tests
	slowest    slowest
	byFile     map[string]*result.Timings // of tests that were not skipped; nil without Timings
	causes     *Causes
	warned     warned
	rerunFirst bool // below the name of a test, since some CI systems show only the first lines

	ended int // tests that ended and were not skipped
}

// line writes one or more lines with the same indentation. It replaces control
// characters, so that text from servers and suites cannot control a terminal.
func (t *text) line(indent int, format string, args ...any) {
	body := strings.Map(visible, fmt.Sprintf(format, args...))
	for line := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n") {
		t.buffer.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+line, " ") + "\n")
	}
}

// colors are the SGR parameters of verdicts.
var colors = map[result.Status]int{
	result.Passed: 32, result.Failed: 31, result.Broken: 35, result.Skipped: 33, result.KnownFailing: 33, result.Flaky: 35,
}

// visible replaces control characters and bidirectional controls.
func visible(r rune) rune {
	if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
		return r
	}
	return '\uFFFD'
}

// took formats a duration, or returns "" without Timings.
func (t *text) took(format string, d time.Duration) string {
	s := ""
	add(&s, t.options.Timings, format, round(d))
	return s
}

func (t *text) headline(v *result.Verdict, rest string) {
	t.status(v.Status)
	t.line(0, "%s%s", title(v.Test), rest)
}

func (t *text) status(s result.Status) {
	if t.options.Color {
		fmt.Fprintf(&t.buffer, "\x1b[%dm%s\x1b[0m ", colors[s], s)
	} else {
		fmt.Fprintf(&t.buffer, "%s ", s)
	}
}

// title returns the name of a test on one line.
func title(id result.TestID) string {
	s := ""
	add(&s, id.Suite != "", "%s: ", id.Suite)
	s += id.Description
	add(&s, id.Where() != "", " [%s]", id.Where())
	add(&s, id.Iteration > 1, " #%d", id.Iteration)
	return strings.ReplaceAll(s, "\n", " ")
}

func (t *text) start(n result.RunStarted) {
	t.started = n
	if t.options.Verbose {
		t.line(0, "%s: %s, %d at once", n.Engine, extent(n), max(1, n.Jobs))
	}
	if n.Seed != nil {
		t.line(0, "%s", shuffled(n))
	}
}

// shuffled returns the hint that repeats the order of a run.
func shuffled(n result.RunStarted) string {
	return fmt.Sprintf("shuffled: --shuffle %d repeats this order", *n.Seed)
}

func (t *text) ready(n result.DeploymentReady) {
	if t.options.Verbose {
		t.line(0, "deployment %s ready%s: %s", n.Name, t.took(" in %s", n.Took), n.Info)
	}
}

func (t *text) finished(v *result.Verdict) {
	if v.SkipKind == result.SkipInterrupted {
		if !t.options.Quiet {
			rest := ""
			add(&rest, v.Reason != "interrupted", " — %s", strings.TrimPrefix(v.Reason, "interrupted; "))
			t.line(0, "interrupted %s%s", title(v.Test), rest)
		}
		return
	}
	if v.Status == result.Skipped {
		t.skips[skipReason(v)]++
	} else {
		t.ended++
		t.slowest.add(v)
		t.addTimings(v)
	}
	t.warned.add(v)
	if its, history := t.causes.Add(v); its != nil {
		if t.options.Verbose || !t.options.Quiet && !t.options.Past && its.tests == 1 && its.number < explainedCauses {
			t.explain(v, t.causes.trends.remark(history))
		}
		return
	}
	if !t.options.Verbose || v.NotRun() { // their number at the end is enough
		return
	}
	rest := t.took(" (%s)", v.Duration)
	if v.Status == result.Skipped {
		rest = " — " + skipReason(v)
	} else {
		add(&rest, v.Reason != "", " — %s", clip(v.Reason, briefWidth))
	}
	t.headline(v, rest)
	for _, w := range v.Warnings {
		t.line(2, "warning: %s", w)
	}
	t.explainDecisions(v)
}

func skipReason(v *result.Verdict) string {
	switch v.SkipKind {
	case result.SkipNotRun:
		return "not run: " + v.Reason
	case result.SkipInterrupted:
		return v.Reason
	}
	return string(v.SkipKind) + ": " + v.Reason
}

// explain writes a failure. If verbose, all its mismatches and its evidence follow.
func (t *text) explain(v *result.Verdict, since string) {
	t.buffer.WriteByte('\n')
	t.headline(v, t.took(" (%s)", v.Duration))
	f := failureOf(v)
	f.Since = since
	if !t.options.Verbose {
		t.failure(&f)
		return
	}
	rerun := f.Rerun
	if t.rerunFirst && rerun != "" {
		t.line(2, "rerun: %s", rerun)
		rerun = ""
	}
	f.Mismatches, f.Gap, f.More, f.Operations, f.Rerun = v.Mismatches, v.OmittedMismatches, 0, nil, ""
	t.failure(&f)
	t.evidence(v)
	if rerun != "" {
		t.head("rerun: " + rerun)
	}
}

// evidence writes operations, events and logs of a test.
func (t *text) evidence(v *result.Verdict) {
	t.explainDecisions(v)
	for _, c := range v.Clients {
		t.head("events of " + c.Client)
		before, after := split(c.Events, c.Omitted)
		t.events(before)
		t.omitted(4, c.Omitted, "event")
		t.events(after)
		if len(c.Events) == 0 {
			t.line(4, "none")
		}
	}
	if len(v.ServerLog) > 0 {
		t.head("the servers' logs")
		withGap(t, 4, v.ServerLog, v.OmittedLog, "line", func(l result.LogLine) {
			stamp := ""
			add(&stamp, t.options.Timings, "%s ", l.Time.UTC().Format("15:04:05.000"))
			t.line(4, "%s%s %s", stamp, l.Server, l.Text)
		})
	}
}

// failures explains the causes of a run that has ended. It lists all causes, unless they were explained before.
func (t *text) failures() {
	all := t.causes.Sorted()
	if len(all) == 0 {
		return
	}
	if t.options.Past && !t.options.Quiet && !t.options.Verbose {
		for _, c := range all[:min(len(all), explainedPastCauses)] {
			t.buffer.WriteByte('\n')
			t.status(c.Status)
			t.line(0, "%s", c.headline())
			t.failure(&c.failure)
		}
		if len(all) > explainedPastCauses {
			t.list(all)
		}
	} else if t.causes.tests > 1 || t.options.Quiet {
		t.list(all)
	}
	t.buffer.WriteByte('\n')
}

// list lists causes in two lines each, the first ones if there are many.
func (t *text) list(all []*Cause) {
	shown, others := first(all, listedCauses, t.options.Verbose)
	head := plural.Of(t.causes.tests, "failure")
	add(&head, len(all) < t.causes.tests, ", %s", plural.Of(len(all), "cause"))
	t.buffer.WriteByte('\n')
	t.line(0, "%s:", head)
	for _, c := range shown {
		t.buffer.WriteString("  ")
		t.status(c.Status)
		t.line(0, "%s", strings.TrimSpace(c.At.String()+"  "+c.headline()))
		if c.Why != "" {
			t.line(6, "%s", clipMiddle(c.Why, briefWidth))
		}
		if also := c.also(); also != "" {
			t.line(6, "also at %s", also)
		}
	}
	if others > 0 {
		t.line(2, "… %s (-v lists all)", plural.Of(others, "more cause"))
	}
}

func (t *text) head(s string) {
	t.buffer.WriteByte('\n')
	t.line(2, "%s", s)
}

// withGap writes the elements of a list, and a note where elements were omitted.
func withGap[T any](t *text, indent int, list []T, g result.Gap, noun string, write func(T)) {
	for i, element := range list {
		if i == g.After {
			t.omitted(indent, g, noun)
		}
		write(element)
	}
}

// split divides a list where elements were omitted.
func split[T any](list []T, g result.Gap) (before, after []T) {
	at := len(list)
	if g.Count > 0 {
		at = min(max(0, g.After), len(list))
	}
	return list[:at], list[at:]
}

func (t *text) omitted(indent int, g result.Gap, noun string) {
	if g.Count > 0 {
		t.line(indent, "… %s left out", plural.Of(g.Count, noun))
	}
}

// events lists events. It counts runs of more than two heartbeat events: a test has
// about a hundred per second, and they seldom matter.
func (t *text) events(events []result.Event) {
	for len(events) > 0 {
		n := slices.IndexFunc(events, func(e result.Event) bool { return !isHeartbeat(e) })
		if n < 0 {
			n = len(events)
		}
		if n > shownHeartbeats {
			t.line(4, "    … %s", plural.Of(n, "heartbeat event"))
		} else {
			n = 1
			t.line(4, "%s", eventLine(events[0]))
		}
		events = events[n:]
	}
}

// isHeartbeat reports whether an event belongs to a successful heartbeat.
func isHeartbeat(e result.Event) bool {
	return e.Type == result.ServerHeartbeatStarted || e.Type == result.ServerHeartbeatSucceeded
}

// nothing stands for the absent value of a mismatch.
const nothing = "(nothing)"

// explainDecisions lists the operations, each with the decisions of the retry core and their rules.
func (t *text) explainDecisions(v *result.Verdict) {
	if len(v.Operations) == 0 {
		return
	}
	t.head("operations")
	withGap(t, 4, v.Operations, v.OmittedOperations, "operation", func(o result.OperationLog) {
		t.line(4, "%s on %s  %s%s", o.Name, o.Object, o.Position, t.took("  (%s)", time.Duration(o.Duration)))
		withGap(t, 6, o.Decisions, o.Omitted, "decision", func(d result.Decision) { t.line(6, "%s", decisionLine(d)) })
		if line := outcomeLine(o); line != "" {
			t.line(6, "→ %s", line)
		}
	})
}

// outcomeLine is the error or the result of an operation, "" without either.
func outcomeLine(o result.OperationLog) string {
	switch {
	case o.Err != nil:
		return "error " + errorLine(o.Err)
	case o.Value.Type != 0:
		value, _ := o.Value.MarshalJSON() // never fails
		return clip(string(value), briefWidth)
	}
	return ""
}

func decisionLine(d result.Decision) string {
	s := fmt.Sprintf("attempt %d: %s", d.Attempt, d.Action)
	add(&s, d.Server != "", " %s", d.Server)
	add(&s, d.DelayMS > 0 || d.Action == "back off", " %s ms",
		strconv.FormatFloat(math.Round(d.DelayMS*1000)/1000, 'f', -1, 64))
	if d.Tokens != nil {
		s += fmt.Sprintf(", tokens %g", *d.Tokens)
	}
	add(&s, len(d.Deprioritized) > 0, ", deprioritized %s", strings.Join(d.Deprioritized, " "))
	add(&s, len(d.Rules) > 0, " [%s]", strings.Join(d.Rules, " "))
	add(&s, d.Reason != "", " %s", d.Reason)
	return s
}

// add appends to a line if the condition holds.
func add(line *string, condition bool, format string, args ...any) {
	if condition {
		*line += fmt.Sprintf(format, args...)
	}
}

func errorLine(e *result.Error) string {
	s := e.Kind
	add(&s, e.Code != 0, " %d %s", e.Code, e.CodeName)
	add(&s, len(e.Labels) > 0, " {%s}", strings.Join(e.Labels, ", "))
	return strings.TrimSpace(s + " " + clip(e.Message, briefWidth))
}

func eventLine(e result.Event) string {
	s := fmt.Sprintf("%3d %s", e.Sequence, e.Type)
	add(&s, e.Address != "", " %s", e.Address)
	switch e.Type.Monitor() {
	case result.MonitorCommand:
		s += " " + strings.TrimPrefix(e.DatabaseName+"."+e.CommandName, ".")
		add(&s, e.DriverConnectionID != "", " connection %s", e.DriverConnectionID)
		switch {
		case e.Redacted:
			s += " (redacted)"
		case e.Failure != nil:
			s += " " + errorLine(e.Failure)
		case len(e.Body) > 0:
			s += " " + brief(e.Body)
		}
	case result.MonitorCMAP:
		add(&s, e.ConnectionID != 0, " connection %d", e.ConnectionID)
		add(&s, e.Reason != "", " (%s)", e.Reason)
		if e.InterruptInUseConnections != nil {
			s += fmt.Sprintf(" interruptInUseConnections=%t", *e.InterruptInUseConnections)
		}
	case result.MonitorSDAM:
		if e.Previous != nil && e.New != nil {
			s += fmt.Sprintf(" %s → %s", e.Previous.Type, e.New.Type)
		}
		if e.Awaited != nil {
			s += fmt.Sprintf(" awaited=%t", *e.Awaited)
		}
	}
	add(&s, e.Err != "", " %s", clip(e.Err, briefWidth))
	return s
}

func (t *text) summary(s result.Summary) {
	if len(t.skips) > 0 && !t.options.Quiet {
		t.skipped()
	}
	if t.options.Timings {
		t.timings(s)
	}
	for _, v := range t.slowest.verdicts {
		t.line(2, "slow: %s %s", round(v.Duration), title(v.Test))
	}
	if !t.options.Quiet {
		for _, w := range t.warned.lines(!t.options.Verbose) {
			t.line(0, "warning: %s", w)
		}
	}
	t.failures()
	for _, p := range s.Problems {
		t.line(0, "problem: %s", p)
	}
	for _, b := range s.Breaks {
		if b.Cell == "" { // Cells has the others
			t.line(0, "%s: %d of %s ran", b.Reason, t.ended, plural.Of(t.started.Total, "test"))
		}
	}
	last := counts(s, t.options.Verbose)
	if t.options.Color && s.ExitCode() == 0 {
		last = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colors[result.Passed], last)
	}
	t.buffer.WriteString(last + "\n")
}

// skipped lists the reasons of skipped tests, the most frequent first.
func (t *text) skipped() {
	most := skipReasons
	if t.causes.tests > 0 {
		most = skipReasonsIfRed
	}
	shown, others := first(byCount(t.skips), most, t.options.Verbose)
	for _, r := range shown {
		if kind, why, notRun := strings.Cut(r, "not run: "); notRun && (kind == "" || kind == string(result.SkipFilter)+
			": ") {
			t.line(0, "not run %d: %s", t.skips[r], why)
		} else {
			t.line(0, "skipped %d: %s", t.skips[r], r)
		}
	}
	if others > 0 {
		t.line(0, "skipped for %s (-v shows them)", plural.Of(others, "other reason"))
	}
}

// round rounds a duration to about three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(time.Microsecond)
	}
}
