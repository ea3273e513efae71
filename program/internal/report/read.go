package report

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/internal/text/jsonerror"
	"github.com/unified-test-runner/utr/result"
)

// SavedRun is a run that was read from its JSON report.
type SavedRun struct {
	Name     string // of the report, for messages
	Verdicts []*result.Verdict
	Shard    string // such as "2/5"; "" for a whole run
	Cell     string // the cell of a matrix; "" for other runs
	// Run describes the run. It is nil if the run has not finished, or the report was cut off.
	Run *PastRun
}

// broke returns why the run did, or nothing.
func (p *SavedRun) broke() []result.Break {
	if p.Run == nil {
		return []result.Break{{Cell: p.Cell, Reason: "the report was cut off: the run did not end"}}
	}
	return p.Run.Breaks
}

// PastRun is the last line of a report.
type PastRun struct {
	Started time.Time            `json:"time"`
	Engine  string               `json:"engine"`
	Servers []string             `json:"servers,omitempty"` // versions of its deployments
	Files   int                  `json:"files"`
	Shard   string               `json:"shard,omitempty"`
	Cell    string               `json:"cell,omitempty"`
	Commit  string               `json:"commit,omitempty"`  // of the repository that CI tested
	Engines map[string]string    `json:"engines,omitempty"` // cells → their engines, with versions
	Kept    map[string]time.Time `json:"kept,omitempty"`    // cells of an earlier run → their start

	Cells       map[string]result.Duration `json:"cellsMS,omitempty"` // cells → their durations
	Duration    result.Duration            `json:"durationMS"`
	CPU         result.Duration            `json:"cpuMS,omitempty"`
	Waiting     result.Duration            `json:"waitingMS,omitempty"`
	Interrupted bool                       `json:"interrupted,omitempty"`
	Breaks      []result.Break             `json:"breaks,omitempty"`
	Problems    []string                   `json:"problems,omitempty"`
}

// Unfinished returns what precedes the report of a run, because the run may be killed: that it has not finished. Read
// recognizes it.
func Unfinished(g Generator, start result.RunStarted) []byte {
	return append(g(start), g(result.RunFinished{Summary: result.Summary{Breaks: []result.Break{unfinished}}})...)
}

var unfinished = result.Break{Reason: "it has not finished"}

// Read reads a JSON report. JSON writes the same report from the result. Errors contain the line. Records with unknown
// fields are errors, since they come from another version.
func Read(name string, from io.Reader) (*SavedRun, error) {
	p := &SavedRun{Name: name}
	return p, eachRecord(name, from, p.add)
}

// Scan reads a JSON report test by test, in little memory. The report may come from another version of utr: unknown
// fields are ignored. The verdicts have no evidence but mismatches, and the returned run has no verdicts.
func Scan(name string, from io.Reader, test func(*result.Verdict)) (*SavedRun, error) {
	p := &SavedRun{Name: name}
	return p, eachRecord(name, from, func(line []byte) error {
		var r struct {
			File, Suite, Test, Deployment, Shard, Cell string

			Iteration  int
			Status     result.Status
			SkipKind   result.SkipKind
			Reason     string
			Time       time.Time
			DurationMS result.Duration
			Mismatches []result.Mismatch
			Rerun      []string
			Run        *PastRun
		}
		if err := (jsonerror.Decoder{Loose: true}).Decode(line, &r); err != nil {
			return err
		}
		if isTest, err := p.line(r.Run, r.Status, r.Shard); !isTest {
			return err
		}
		test(&result.Verdict{Status: r.Status, SkipKind: r.SkipKind, Reason: r.Reason, Started: r.Time,
			Duration: time.Duration(r.DurationMS),
			Test: result.TestID{File: r.File, Suite: r.Suite, Description: r.Test, Deployment: r.Deployment, Cell: r.Cell,
				Iteration: r.Iteration},
			Rerun: r.Rerun, Evidence: result.Evidence{Mismatches: r.Mismatches}})
		return nil
	})
}

// eachRecord calls add for each line that is not blank. Errors contain the line.
func eachRecord(name string, from io.Reader, add func(line []byte) error) error {
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s: %w", name, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := add(line); err != nil {
				return fmt.Errorf("%s:%d: not a record of a test: %w", name, n, err)
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (p *SavedRun) add(line []byte) error {
	var r struct {
		record
		Run *PastRun `json:"run"`
	}
	if err := (jsonerror.Decoder{}).Decode(line, &r); err != nil {
		return err
	}
	if isTest, err := p.line(r.Run, r.Status, r.Shard); !isTest {
		return err
	}
	p.Verdicts = append(p.Verdicts, r.verdict())
	return nil
}

// line adds what a line says about the run, and reports whether the line is about a test.
func (p *SavedRun) line(run *PastRun, status result.Status, shard string) (isTest bool, err error) {
	switch {
	case run != nil: // the last line
		p.Shard, p.Cell = run.Shard, run.Cell
		if !slices.Contains(run.Breaks, unfinished) {
			p.Run = run
		}
		return false, nil
	case !slices.Contains(result.Statuses(), status):
		return false, fmt.Errorf("the status is %q", status)
	}
	p.Shard = cmp.Or(shard, p.Shard)
	return true, nil
}
