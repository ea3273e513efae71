package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// SavedRun is a run that was read from its JSON report.
type SavedRun struct {
	Name     string // of the report, for messages
	Verdicts []*result.Verdict
	Shard    string // such as "2/5"; "" for a whole run
	Cell     string // the cell of a matrix; "" for other runs
	// Run describes the run. It is nil unless the report is a complete report of a shard, a cell or a matrix.
	Run *PastRun
}

// PastRun is the last line of a report of a shard, a cell or a matrix.
type PastRun struct {
	Started     time.Time            `json:"time"`
	Engine      string               `json:"engine"`
	Servers     []string             `json:"servers,omitempty"` // versions of its deployments
	Files       int                  `json:"files"`
	Shard       string               `json:"shard,omitempty"`
	Cell        string               `json:"cell,omitempty"`
	Kept        map[string]time.Time `json:"kept,omitempty"` // cells of an earlier run → their start
	Duration    result.Duration      `json:"durationMS"`
	Interrupted bool                 `json:"interrupted,omitempty"`
	Problems    []string             `json:"problems,omitempty"`
}

// Read reads a JSON report. JSON writes the same report from the result. Errors contain the line. Records with unknown
// fields are errors, since they come from another version.
func Read(name string, from io.Reader) (*SavedRun, error) {
	p := &SavedRun{Name: name}
	return p, eachRecord(name, from, p.add)
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
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var r struct {
		record
		Run *PastRun `json:"run"`
	}
	if err := d.Decode(&r); err != nil {
		return err
	}
	switch {
	case r.Run != nil:
		p.Shard, p.Cell, p.Run = r.Run.Shard, r.Run.Cell, r.Run
		return nil
	case !slices.Contains(result.Statuses(), r.Status):
		return fmt.Errorf("the status is %q", r.Status)
	}
	if r.Shard != "" {
		p.Shard = r.Shard
	}
	p.Verdicts = append(p.Verdicts, r.verdict())
	return nil
}
