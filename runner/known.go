package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/source"
)

// KnownFailure expects tests to fail. An unexpected pass and a pattern that
// matches no test are Problems of the Summary.
type KnownFailure struct {
	Position source.Position
	Pattern  *regexp.Regexp // over "file: description"
	Reason   string
	// Suites matches the files that the failure applies to. If the run has none of
	// them, the pattern may match no test. Nil means all files.
	Suites *regexp.Regexp
	// Until is the last day (UTC) of the failure; zero means no end. Afterward, the
	// tests must pass, and the entry is a Problem of the Summary.
	Until time.Time
	// Sometimes means that the tests fail at random and may pass.
	Sometimes bool
}

// failing returns known failures for suites that must fail (valid-fail).
func failing(suites []*specs.Suite) (list []KnownFailure) {
	for _, s := range suites {
		if s.MustFail {
			list = append(list, KnownFailure{Position: s.Root.Position, Pattern: regexp.MustCompile("^" + regexp.QuoteMeta(s.File) + ": "),
				Reason: "its suite is one of valid-fail, whose tests must fail"})
		}
	}
	return list
}

// ParseKnownFailing parses a list of known failures. Each line is a regular expression over "file: description",
// blanks, #, blanks and a reason. Empty lines and lines that start with # are comments. The pattern ends at the first
// # after a blank: escape one as \x23. "until 2027-01-31:" at the start of a reason sets Until, then "sometimes:"
// sets Sometimes. A line "[for REGEXP]" sets Suites for the following lines; "[for all]" resets it.
func ParseKnownFailing(name string, r io.Reader) ([]KnownFailure, error) {
	var list []KnownFailure
	var suites *regexp.Regexp
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		at := source.Position{File: name, Line: n, Column: 1}
		var err error
		if files, found := strings.CutPrefix(line, "[for "); found && strings.HasSuffix(files, "]") {
			suites, err = parseSuites(strings.TrimSpace(strings.TrimSuffix(files, "]")))
		} else {
			var k KnownFailure
			k, err = parseKnown(line)
			k.Position, k.Suites = at, suites
			list = append(list, k)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

func parseSuites(text string) (*regexp.Regexp, error) {
	switch text {
	case "":
		return nil, errors.New("[for REGEXP] names files, or all")
	case "all":
		return nil, nil
	}
	return regexp.Compile(text)
}

// knownForm matches the pattern, the reason, the day at the start of the reason,
// and the rest. "until" without a digit is part of the reason.
var knownForm = regexp.MustCompile(`^(.*?)[ \t]+#\s*((?:until[ \t]+(\d[^:]*)(?::\s*|$))?(.*))$`)

func parseKnown(line string) (k KnownFailure, err error) {
	parts := knownForm.FindStringSubmatch(line)
	if parts == nil || parts[2] == "" {
		return k, errors.New("a known failure needs a reason: pattern # reason")
	}
	day, rest := strings.TrimSpace(parts[3]), parts[4]
	k.Reason, k.Sometimes = parts[2], strings.HasPrefix(rest, "sometimes:")
	if k.Pattern, err = regexp.Compile(parts[1]); err != nil || day == "" {
		return k, err
	}
	if rest == "" {
		return k, errors.New("a known failure needs a reason after its date: pattern # until 2027-01-31: reason")
	}
	if k.Until, err = time.Parse(time.DateOnly, day); err != nil {
		return k, fmt.Errorf("%q is not a date such as 2027-01-31", day)
	}
	return k, nil
}

// Expired reports whether the day Until has passed.
func (k *KnownFailure) Expired(now time.Time) bool {
	return !k.Until.IsZero() && !now.Before(k.Until.AddDate(0, 0, 1))
}
