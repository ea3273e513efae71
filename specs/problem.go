package specs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/schema"
)

// Severity says what a problem means for its file.
type Severity uint8

// The severities. A file with an Error is refused. A Warning is printed by
// validation only: the file runs, and a test that the format says must fail
// then fails while it runs.
const (
	Error Severity = iota
	Warning
)

// String gives "error" or "warning".
func (s Severity) String() string {
	return [...]string{"error", "warning"}[s]
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	Position source.Position
	// Path is the place in the document, such as
	// tests[0].operations[2].arguments; "" is the whole file.
	Path     string
	Rule     string // name of the check, such as "schema" or "duplicate-test"
	Severity Severity
	Message  string
}

// bySchema are problems that the schema finds.
func bySchema(violations ...schema.Problem) (problems []Problem) {
	for _, p := range violations {
		problems = append(problems, Problem{Position: p.Position, Path: p.Path, Rule: "schema", Message: p.Message})
	}
	return problems
}

func byPosition(a, b Problem) int { return a.Position.Compare(b.Position) }

// String gives one line: position, severity, path, message and rule.
func (p Problem) String() string {
	path := p.Path
	if path != "" {
		path += ": "
	}
	return fmt.Sprintf("%s: %s: %s%s (%s)", p.Position, p.Severity, path, p.Message, p.Rule)
}

// InvalidError says why a file is refused, with everything that is wrong with
// it. Problems has at least one of severity Error.
type InvalidError struct {
	File     string
	Problems []Problem // in the order of the file
}

func invalid(file string, p Problem) error { return &InvalidError{File: file, Problems: []Problem{p}} }

// Error lists all problems, one a line.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// PathError says why something that the user named cannot be loaded: it does
// not exist, cannot be read, is not a suite, or contains no suites.
type PathError struct {
	Path    string // as named by the user; "" for all that was named
	Message string
	Err     error // the cause, or nil
}

// Error gives path: message.
func (e *PathError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Unwrap gives the cause.
func (e *PathError) Unwrap() error { return e.Err }

// LoadError holds every error of a load: of type *PathError and
// *InvalidError, in the order of the files.
type LoadError struct{ Errors []error }

// Error lists the errors, at least a line each.
func (e *LoadError) Error() string {
	return errors.Join(e.Errors...).Error()
}

// Unwrap gives the errors to errors.Is and errors.As.
func (e *LoadError) Unwrap() []error { return e.Errors }
