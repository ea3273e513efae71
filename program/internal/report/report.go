// Package report writes the reports of a run. Every report reads the stream of notes: a Generator turns notes into
// bytes, and a Reporter writes the bytes and keeps the first error.
package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/unified-test-runner/utr/result"
)

// Generator returns the bytes that a note adds to a report, often none.
// It keeps state between notes and must not be called concurrently.
type Generator func(result.Note) []byte

// hooks handle the notes of each type. A nil hook ignores them.
type hooks struct {
	start  func(result.RunStarted)
	ready  func(result.DeploymentReady)
	test   func(*result.Verdict)
	cell   func(result.CellFinished)
	finish func(result.Summary)
}

// generator returns what the hooks write to out for each note.
func (h hooks) generator(out *bytes.Buffer) Generator {
	return func(n result.Note) []byte {
		out.Reset()
		switch n := n.(type) {
		case result.RunStarted:
			call(h.start, n)
		case result.DeploymentReady:
			call(h.ready, n)
		case result.TestFinished:
			call(h.test, n.Verdict)
		case result.CellFinished:
			call(h.cell, n)
		case result.RunFinished:
			call(h.finish, n.Summary)
		}
		return bytes.Clone(out.Bytes())
	}
}

func call[T any](hook func(T), note T) {
	if hook != nil {
		hook(note)
	}
}

// Reporter writes one report.
type Reporter struct {
	name     string
	generate Generator
	out      io.Writer
	err      error
}

// New returns a Reporter that writes to out. Errors contain the name, such as a file or "standard output".
func New(name string, generate Generator, out io.Writer) *Reporter {
	return &Reporter{name: name, generate: generate, out: out}
}

// Write writes the report of a run that has ended.
func Write(name string, generate Generator, out io.Writer, notes ...result.Note) error {
	r := New(name, generate, out)
	for _, n := range notes {
		r.Note(n)
	}
	return r.Err()
}

// Note reports the next note. After a failed write it writes nothing more, since
// a gap in a report is worse than a truncated report.
func (r *Reporter) Note(n result.Note) {
	text := r.generate(n)
	if r.err != nil || len(text) == 0 {
		return
	}
	if _, err := r.out.Write(text); err != nil {
		r.err = fmt.Errorf("writing the report to %s: %w", r.name, err)
	}
}

// Err returns the first write error.
func (r *Reporter) Err() error { return r.err }
