package runner

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// KnownFailure expects tests to fail. They run all the same; one that passes
// is a Problem of the Summary, unless it is known to do so Sometimes, and so
// is a pattern that matches no test.
type KnownFailure struct {
	Position source.Position
	Pattern  *regexp.Regexp // over "file: description"
	Reason   string
	// Sometimes: what the engine does wrong depends on chance, such as which
	// server it selects, so that a pass says nothing.
	Sometimes bool
}

// ParseKnownFailing reads a list of known failures: on each line a regular
// expression over "file: description", blanks, #, blanks, and a reason, which
// is demanded. Empty lines and lines that start with # are comments. The
// pattern ends at the first # that follows a blank, so that a # inside a
// pattern is written without one before it, or as \x23. A reason that begins
// with "sometimes:" is one of Sometimes.
func ParseKnownFailing(name string, r io.Reader) ([]KnownFailure, error) {
	var list []KnownFailure
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		at := source.Position{File: name, Line: n, Column: 1}
		pattern, reason, found := cutComment(line)
		if !found || reason == "" {
			return nil, fmt.Errorf("%s: a known failure needs a reason: pattern # reason", at)
		}
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		_, sometimes := strings.CutPrefix(reason, "sometimes:")
		list = append(list, KnownFailure{Position: at, Pattern: compiled, Reason: reason, Sometimes: sometimes})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// cutComment splits "pattern # reason" at the first # after a blank.
func cutComment(line string) (pattern, reason string, found bool) {
	for i := 1; i < len(line); i++ {
		if line[i] == '#' && (line[i-1] == ' ' || line[i-1] == '\t') {
			return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:]), true
		}
	}
	return line, "", false
}
