// Package report tells people and programs how a run went. All reporters read
// one stream of notes. Generating is apart from writing: a Generator turns
// notes into bytes and can do nothing else, a Reporter writes the bytes and
// remembers what went wrong with that.
package report

import (
	"fmt"
	"io"

	"github.com/unified-test-runner/utr/result"
)

// Generator gives the bytes that a note adds to a report; many notes add
// none. It keeps what it has to remember between notes, and is not to be
// called by two goroutines at once.
type Generator func(result.Note) []byte

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

// Note takes the next note. After the first failed write nothing more is
// written: half a report that looks whole would be worse than one cut off.
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
