package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

//go:embed page/page.js
var pageJS string

// HTML writes a page for a browser that needs nothing beside itself, neither a
// server nor another file. The page comes first and then, as tests end, a line
// of data for each, so that the memory of a run stays flat and a report that
// was cut off can be opened. What suites and servers say is data of the page,
// never part of its markup, and its policy lets no other script run.
//
// With earlier runs, in any order, it shows how each test ended in them and
// how the runs compare. Of more than sixteen the last ones are shown.
func HTML(earlier ...*Earlier) Generator {
	h := &page{numbers: map[string]map[string]int{}}
	if len(earlier) > 0 {
		h.trends = newTrends(earlier)
	}
	return func(n result.Note) []byte {
		h.Reset()
		h.note(n)
		return bytes.Clone(h.Bytes())
	}
}

type page struct {
	bytes.Buffer
	begun   bool
	numbers map[string]map[string]int // what lines refer to by number, by the letter of their kind
	trends  *trends                   // nil without earlier runs
	details int                       // bytes of details so far
	kept    []string                  // what is to be said of cells from before
}

// The lines of data. page.js reads them: a letter for the kind, then what the
// kind holds; a line that is an object belongs to the verdict before it.
const (
	lineRun     = "r"
	lineFile    = "f" // path, description
	lineColumn  = "c" // deployment, or cell of a matrix
	lineReason  = "s"
	lineEarlier = "p" // an earlier run
	lineHistory = "h" // how a test ended in each of them
	lineVerdict = "v"
	lineEnd     = "e"
)

func (h *page) note(n result.Note) {
	if !h.begun {
		h.begun = true
		h.WriteString(pageHead())
		h.earlier()
	}
	switch n := n.(type) {
	case result.RunStarted:
		about := map[string]any{"engine": n.Engine, "total": n.Total, "files": n.Files, "shard": n.Shard}
		if !n.Time.IsZero() {
			about["time"] = n.Time.UTC().Format(time.RFC3339)
		}
		h.line(lineRun, about)
	case result.TestFinished:
		h.verdict(n.Verdict)
	case result.CellFinished:
		if !n.Kept.IsZero() {
			h.kept = append(h.kept, "cell "+n.Cell+": "+keptFrom(n))
		}
	case result.RunFinished:
		about := map[string]any{"kept": h.kept, "durationMS": milliseconds(n.Summary.Duration), "interrupted": n.Summary.Interrupted, "problems": n.Summary.Problems}
		if h.trends != nil {
			about["gone"] = h.trends.gone()
		}
		h.line(lineEnd, about)
		h.WriteString("</script>\n</body>\n</html>\n")
	}
}

// earlier tells of the earlier runs.
func (h *page) earlier() {
	if h.trends == nil {
		return
	}
	for _, r := range h.trends.runs {
		h.line(lineEarlier, map[string]any{
			"name": filepath.Base(r.name), "time": r.began.UTC().Format(time.RFC3339), "durationMS": milliseconds(r.duration), "counts": r.counts,
		})
	}
}

func pageHead() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return strings.NewReplacer("{{.Style}}", pageCSS, "{{.Script}}", pageJS, "{{.ScriptHash}}", hash(pageJS)).Replace(pageHTML)
}

// line writes values as a JSON array on a line. encoding/json escapes <, > and
// &, so that no text ends the element that the data are in.
func (h *page) line(kind string, values ...any) {
	text, err := json.Marshal(append([]any{kind}, values...))
	if err == nil { // what is not a number in JSON is in details alone
		h.Write(text)
		h.WriteByte('\n')
	}
}

// number gives the number of what lines refer to, telling it at its first use.
func (h *page) number(kind, key string, values ...any) int {
	known := h.numbers[kind]
	if known == nil {
		known = map[string]int{}
		h.numbers[kind] = known
	}
	n, found := known[key]
	if !found {
		n = len(known)
		known[key] = n
		h.line(kind, values...)
	}
	return n
}

// pageStatuses is the order in which the page shows verdicts; page.js has the
// same.
func pageStatuses() []result.Status {
	return []result.Status{result.Failed, result.Broken, result.Flaky, result.Passed, result.KnownFailing, result.Skipped}
}

func (h *page) verdict(v *result.Verdict) {
	id := v.Test
	file := h.number(lineFile, id.File+"\x00"+id.Suite, id.File, id.Suite)
	head := id.Cell // a cell has one verdict for each test, whatever it ran on
	if head == "" {
		head = id.Deployment
	}
	column := h.number(lineColumn, head, head)
	reason := v.Reason
	if v.Status == result.Skipped {
		reason = skipReason(v)
	}
	why := -1
	if reason != "" {
		why = h.number(lineReason, reason, reason)
	}
	line := []any{file, id.Description, v.Position.Line, v.Position.Column, column, max(1, id.Iteration),
		slices.Index(pageStatuses(), v.Status), milliseconds(v.Duration), why}
	if h.trends != nil {
		history := h.trends.history(id)
		line = append(line, h.number(lineHistory, history, history))
	}
	h.line(lineVerdict, line...)
	d := h.detailOf(v)
	for _, a := range v.Attempts {
		d.Attempts = append(d.Attempts, pageAttempt{a.Status, a.Reason, milliseconds(a.Duration), h.detailOf(a)})
	}
	if len(v.Rerun) > 0 && (v.Status.Red() || v.Status == result.KnownFailing) {
		d.Rerun = Quote(v.Rerun)
	}
	text, err := json.Marshal(d)
	if err != nil { // a number that JSON cannot write
		d.Operations, d.Clients, d.Attempts = nil, nil, nil
		text, _ = json.Marshal(d)
	}
	if h.details += len(text); len(text) > len("{}") {
		h.Write(text)
		h.WriteByte('\n')
	}
}

// detailBytes is how much of details a page has before it keeps less of each:
// more than that no browser opens at once.
const detailBytes = 32 << 20

// limits are those of one test on the page; the JSON report has more.
func (h *page) limits() result.Limits {
	l := result.DefaultLimits()
	l.Mismatches, l.Events, l.Operations, l.Decisions = 100, 400, 100, 100
	l.MismatchBytes, l.EventBytes, l.Document = 64<<10, 256<<10, 16<<10
	if h.details > detailBytes {
		l.Mismatches, l.Events, l.Operations, l.Decisions, l.LogLines = 5, 20, 10, 20, 12
		l.MismatchBytes, l.EventBytes, l.LogBytes, l.Document = 4<<10, 4<<10, 2<<10, 1<<10
	}
	return l
}

type (
	pageDetail struct {
		evidenceRecord
		Clients  []pageClient  `json:"clients,omitempty"`
		Attempts []pageAttempt `json:"attempts,omitempty"`
		Rerun    string        `json:"rerun,omitempty"`
	}
	pageClient struct {
		clientRecord
		Heartbeats int `json:"heartbeats,omitempty"` // that went well, and were left out
	}
	pageAttempt struct {
		Status     result.Status `json:"status"`
		Reason     string        `json:"reason,omitempty"`
		DurationMS float64       `json:"durationMS"`
		pageDetail
	}
)

// detailOf is what a verdict rests on, as much as a person looks at: of long
// lists the beginning and the end, and no heartbeat that went well.
func (h *page) detailOf(v *result.Verdict) pageDetail {
	// Cut before anything is made into JSON: what is left out may be long.
	short := *v
	short.Clients = slices.Clone(v.Clients)
	heartbeats := make([]int, len(short.Clients))
	for i := range short.Clients {
		c := &short.Clients[i]
		before, after := split(c.Events, c.Omitted)
		before, after = slices.DeleteFunc(slices.Clone(before), beat), slices.DeleteFunc(slices.Clone(after), beat)
		heartbeats[i] = len(c.Events) - len(before) - len(after)
		c.Events, c.Omitted.After = slices.Concat(before, after), len(before)
	}
	short.Trim(h.limits())
	d := pageDetail{evidenceRecord: evidence(&short)}
	for i, c := range d.evidenceRecord.Clients {
		d.Clients = append(d.Clients, pageClient{c, heartbeats[i]})
	}
	return d
}
