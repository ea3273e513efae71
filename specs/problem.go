package specs

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/format/source"
)

// Severity is the effect of a problem on its file.
type Severity uint8

// The severities. A file with an Error is rejected. A file with a Warning can run, and tests fail as the format
// requires. Only validation prints warnings.
const (
	Error Severity = iota
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	return [...]string{"error", "warning"}[s]
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	Position source.Position
	Path     string // such as tests[0].operations[2].arguments; "" for the whole file
	Rule     string // name of the check, such as "schema" or "duplicate-test"
	Severity Severity
	Message  string
}

func bySchema(violations ...schema.Problem) (problems []Problem) {
	for _, p := range violations {
		problems = append(problems, Problem{Position: p.Position, Path: p.Path, Rule: "schema", Message: p.Message})
	}
	return problems
}

// Text returns the message. If tests cannot pass because of the problem, it says so.
func (p Problem) Text() string {
	means := ""
	switch {
	case !checkOf(p.Rule).failsTest:
	case strings.HasPrefix(p.Path, "createEntities["):
		means = "no test of the file can pass"
	case strings.HasPrefix(p.Path, "tests["):
		means = "the test cannot pass"
	}
	switch {
	case means == "":
		return p.Message
	case strings.HasSuffix(p.Message, "?"): // did you mean …
		return p.Message + " " + strings.ToUpper(means[:1]) + means[1:]
	}
	return p.Message + "; " + means
}

// String returns one line: position, severity, path, text and rule.
func (p Problem) String() string {
	path := p.Path
	if path != "" {
		path += ": "
	}
	return fmt.Sprintf("%s: %s: %s%s (%s)", p.Position, p.Severity, path, p.Text(), p.Rule)
}

// InvalidError reports all problems of a rejected file. At least one has severity Error.
type InvalidError struct {
	Problems []Problem // in the order of the file
}

func invalid(p Problem) error { return &InvalidError{Problems: []Problem{p}} }

// Error returns all problems, one a line.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// PathError reports why a path cannot be loaded: it does not exist, cannot be read, is not a suite, or
// contains no suites.
type PathError struct {
	Path    string // as named by the user; "" for all paths
	Message string
}

// Error returns "path: message".
func (e *PathError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}
