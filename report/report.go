// Package report describes to people and programs how a run went. All reports
// read one stream of notes. A Generator turns notes into bytes and does nothing
// else; a Reporter writes the bytes and remembers the first error.
package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/unified-test-runner/utr/result"
)

// Generator gives the bytes that a note adds to a report; many notes add none.
// It keeps state between notes, and must not be called concurrently.
type Generator func(result.Note) []byte

// hooks are what a report does about notes; one that is nil does nothing.
type hooks struct {
	start  func(result.RunStarted)
	ready  func(result.DeploymentReady)
	test   func(*result.Verdict)
	cell   func(result.CellFinished)
	finish func(result.Summary)
}

// generator gives what the hooks write to out about each note.
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

func call[T any](hook func(T), about T) {
	if hook != nil {
		hook(about)
	}
}

// Reporter writes one report.
type Reporter struct {
	name     string
	generate Generator
	out      io.Writer
	err      error
}

// New joins a generator to the place where its report goes. The name is for
// errors: a file, "standard output".
func New(name string, generate Generator, out io.Writer) *Reporter {
	return &Reporter{name: name, generate: generate, out: out}
}

// Note takes the next note. After a failed write it writes nothing more: a report
// with a hole would be worse than one that is cut off.
func (r *Reporter) Note(n result.Note) {
	text := r.generate(n)
	if r.err != nil || len(text) == 0 {
		return
	}
	if _, err := r.out.Write(text); err != nil {
		r.err = fmt.Errorf("writing the report to %s: %w", r.name, err)
	}
}

// Err is the first error of writing.
func (r *Reporter) Err() error { return r.err }
