package report

import (
	"bytes"
	"cmp"
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

// HTML writes a self-contained page for a browser. The page precedes the lines of data that it adds for each test, so
// that a run takes constant memory and a truncated report can be opened. Text from suites and servers is data, never
// markup, and the content security policy allows no other script.
//
// With earlier runs, in any order, it shows the history of each test and compares
// the runs. Of more than sixteen, it shows the last ones.
func HTML(earlier ...*EarlierRun) Generator {
	h := &page{causes: NewCauses(earlier), numbers: map[string]map[string]int{"test": {}, "column": {}}}
	h.head()
	head := bytes.Clone(h.Bytes())
	lines := hooks{start: h.start, test: h.verdict, cell: h.cell, finish: h.finish}.generator(&h.Buffer)
	return func(n result.Note) []byte {
		text := append(head, lines(n)...)
		head = nil
		return text
	}
}

type page struct {
	bytes.Buffer
	causes  *Causes
	numbers map[string]map[string]int // of tests and columns, by kind and key
	details int                       // bytes of details so far
	cells   []string                  // messages about kept and empty cells
	columns string                    // "cell" in a matrix
}

func (h *page) head() {
	hash := sha256.Sum256([]byte(pageJS))
	script := base64.StdEncoding.EncodeToString(hash[:])
	h.WriteString(strings.NewReplacer("{{.Style}}", pageCSS, "{{.Script}}", pageJS, "{{.ScriptHash}}",
		script).Replace(pageHTML))
	if h.causes.trends != nil {
		for _, r := range h.causes.trends.runs {
			_ = h.line("earlier", fields{"name": filepath.Base(r.name), "time": r.began.UTC().Format(time.RFC3339),
				"durationMS": result.Duration(r.duration), "counts": r.counts})
		}
	}
}

func (h *page) start(n result.RunStarted) {
	about := fields{"engine": n.Engine, "total": n.Total, "files": n.Files, "shard": n.Shard}
	if !n.Time.IsZero() {
		about["time"] = n.Time.UTC().Format(time.RFC3339)
	}
	_ = h.line("run", about) // plain data
}

func (h *page) cell(n result.CellFinished) {
	if why := ran(n); why != "" {
		h.cells = append(h.cells, "cell "+n.Cell+": "+why)
	}
}

func (h *page) finish(s result.Summary) {
	about := fields{"cells": h.cells, "durationMS": result.Duration(s.Duration), "problems": Faults(s)}
	if h.columns != "" {
		about["columns"] = h.columns
	}
	if h.causes.trends != nil {
		about["gone"] = h.causes.trends.gone()
	}
	_ = h.line("end", about)
	h.WriteString("</script>\n</body>\n</html>\n")
}

// fields are the fields of a line of data, as page.js reads them.
type fields map[string]any

// line writes a line of data: a JSON object whose only key is the kind. It omits lines without fields. encoding/json
// escapes <, > and &, so that no text ends the script element.
func (h *page) line(kind string, about any) error {
	text, err := json.Marshal(fields{kind: about})
	if err == nil && !bytes.HasSuffix(text, []byte(":{}}")) {
		h.Write(append(text, '\n'))
	}
	return err
}

// number returns the number of a test or column, from 0. It writes a line for a new one.
func (h *page) number(kind, key string, about any) int {
	known := h.numbers[kind]
	n, found := known[key]
	if !found {
		n = len(known)
		known[key] = n
		_ = h.line(kind, about) // plain data
	}
	return n
}

// verdict writes a verdict and, on a separate line, its details. The script page.js parses them on demand.
func (h *page) verdict(v *result.Verdict) {
	id := v.Test
	var why any = ""
	reason := v.Reason
	if v.Status == result.Skipped {
		reason = skipReason(v)
	}
	its, history := h.causes.Add(v)
	if its != nil {
		why = its.number
	}
	test := h.number("test", id.File+"\n"+id.Suite+"\n"+id.Description, fields{
		"file": id.File, "suite": id.Suite, "test": id.Description, "line": v.Position.Line, "column": v.Position.Column})
	// A cell has one verdict per test, whatever the deployment.
	on := cmp.Or(id.Cell, id.Deployment)
	if id.Cell != "" {
		h.columns = "cell"
	}
	values := []any{test, h.number("column", on, on), v.Status, result.Duration(v.Duration), history, reason, why}
	if id.Iteration > 1 {
		values = append(values, id.Iteration)
	}
	for values[len(values)-1] == "" {
		values = values[:len(values)-1]
	}
	_ = h.line("verdict", values) // plain data
	before := h.Len()
	d := pageDetail{Evidence: h.evidence(v)}
	if its != nil {
		f := failureOf(v)
		d.Why, d.Rerun, f.Rerun = f.Why, f.Rerun, ""
		d.Failure = f.lines()
	}
	for _, a := range v.Attempts {
		d.Attempts = append(d.Attempts,
			attemptRecord{Status: a.Status, Reason: a.Reason, DurationMS: result.Duration(a.Duration), Evidence: h.evidence(a)})
	}
	if len(v.Rerun) > 0 && v.Status == result.KnownFailing {
		d.Rerun = Quote(v.Rerun)
	}
	if h.line("detail", d) != nil { // a number that JSON cannot write
		d.Operations, d.Clients, d.Attempts = nil, nil, nil
		_ = h.line("detail", d)
	}
	h.details += h.Len() - before
}

// detailBytes is the size of all details after which each is cut shorter, so that browsers can open the page.
const detailBytes = 32 << 20

// limits are the limits of the next test; the JSON report has more.
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

type pageDetail struct {
	Why     string   `json:"why,omitempty"`
	Failure []string `json:"failure,omitempty"` // lines of the failure, as in the other reports
	result.Evidence
	Attempts []attemptRecord `json:"attempts,omitempty"`
	Rerun    string          `json:"rerun,omitempty"`
}

// evidence cuts long lists in the middle and omits successful heartbeats, before anything is converted to JSON.
func (h *page) evidence(v *result.Verdict) result.Evidence {
	short := *v
	short.Clients = slices.Clone(v.Clients)
	for i := range short.Clients {
		c := &short.Clients[i]
		before, after := split(slices.Clone(c.Events), c.Omitted)
		before, after = slices.DeleteFunc(before, isHeartbeat), slices.DeleteFunc(after, isHeartbeat)
		c.Heartbeats = len(c.Events) - len(before) - len(after)
		c.Events, c.Omitted.After = slices.Concat(before, after), len(before)
	}
	short.Trim(h.limits())
	return short.Evidence
}
