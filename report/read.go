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

// Past is a run as a JSON report tells it.
type Past struct {
	Name     string // of the report, for messages
	Verdicts []*result.Verdict
	// Shard is the part of a run that this is, such as "2/5"; "" if whole.
	Shard string
	// Cell is the cell of a matrix that this is; "" if it is none, or several.
	Cell string
	// Run tells of the run itself; nil where the report does not. That of a
	// shard or a cell does, unless it was cut off.
	Run *PastRun
}

// PastRun is what a report of a shard or a cell says of its run.
type PastRun struct {
	Started     time.Time
	Engine      string
	Servers     []string // versions that its deployments have
	Files       int
	Kept        map[string]time.Time // cells of an earlier run, and when they began
	Duration    time.Duration
	Interrupted bool
	Problems    []string
}

// Read reads a JSON report. What it gives makes, reported anew, the same
// report. An error names the line; a record with a field that is not known is
// one of another version, and refused.
func Read(name string, from io.Reader) (*Past, error) {
	p := &Past{Name: name}
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		end := err == io.EOF
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := p.add(line); err != nil {
				return nil, fmt.Errorf("%s:%d: no record of a test: %w", name, n, err)
			}
		}
		if end {
			return p, nil
		}
	}
}

func (p *Past) add(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var r struct {
		record
		Run *runRecord `json:"run"`
	}
	if err := d.Decode(&r); err != nil {
		return err
	}
	switch {
	case r.Run != nil:
		p.Shard, p.Cell = r.Run.Shard, r.Run.Cell
		p.Run = &PastRun{
			Started: r.Run.Time, Engine: r.Run.Engine, Servers: r.Run.Servers, Files: r.Run.Files, Kept: r.Run.Kept, Duration: fromMilliseconds(r.Run.DurationMS),
			Interrupted: r.Run.Interrupted, Problems: r.Run.Problems,
		}
		return nil
	case !slices.Contains(result.Statuses(), r.Status):
		return fmt.Errorf("the status is %q", r.Status)
	}
	if r.Shard != "" {
		p.Shard = r.Shard
	}
	v := &result.Verdict{}
	reading.record(&r.record, v)
	p.Verdicts = append(p.Verdicts, v)
	return nil
}
