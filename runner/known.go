package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

// KnownFailure expects tests to fail. They run all the same; one that passes
// is a Problem of the Summary, unless it is known to do so Sometimes, and so
// is a pattern that matches no test.
type KnownFailure struct {
	Position source.Position
	Pattern  *regexp.Regexp // over "file: description"
	Reason   string
	// Suites, over files, says which suites the failure is about: where none of
	// them is in the run, that the pattern matches no test is not a problem. Nil:
	// always about some.
	Suites *regexp.Regexp
	// Until is the last day (UTC) on which the failure is known; the zero Time
	// sets no end. From the next day on tests may not fail any more, and the
	// line is a Problem of the Summary, until somebody looks at it.
	Until time.Time
	// Sometimes: what the engine does wrong depends on chance, such as which
	// server it selects, so that a pass says nothing.
	Sometimes bool
}

// failing gives the known failures that are known by the format: the tests of
// suites that must fail.
func failing(suites []*specs.Suite) (list []KnownFailure) {
	for _, s := range suites {
		if s.MustFail {
			list = append(list, KnownFailure{Position: s.Root.Position, Pattern: regexp.MustCompile("^" + regexp.QuoteMeta(s.File) + ": "),
				Reason: "its suite is one of valid-fail, whose tests must fail"})
		}
	}
	return list
}

// ParseKnownFailing reads a list of known failures: on each line a regular
// expression over "file: description", blanks, #, blanks, and a reason, which
// is required. Empty lines and lines that start with # are comments. The
// pattern ends at the first # that follows a blank, so that a # inside a
// pattern is written without one before it, or as \x23. A reason that begins
// with "until 2027-01-31:" is one of Until that day; one that begins, after
// that, with "sometimes:" is one of Sometimes. A line "[for REGEXP]" says of
// those after it, up to the next one, which files they are about; "[for all]"
// ends that.
func ParseKnownFailing(name string, r io.Reader) ([]KnownFailure, error) {
	var list []KnownFailure
	var about *regexp.Regexp
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		at := source.Position{File: name, Line: n, Column: 1}
		var err error
		if files, found := strings.CutPrefix(line, "[for "); found && strings.HasSuffix(files, "]") {
			about, err = parseAbout(strings.TrimSpace(strings.TrimSuffix(files, "]")))
		} else {
			var k KnownFailure
			k, err = parseKnown(line)
			k.Position, k.Suites = at, about
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

// parseAbout reads what a [for …] line names.
func parseAbout(text string) (*regexp.Regexp, error) {
	switch text {
	case "":
		return nil, errors.New("[for REGEXP] names files, or all")
	case "all":
		return nil, nil
	}
	return regexp.Compile(text)
}

// knownForm has the pattern, the reason, the day at the start of the reason,
// and the rest. Words that begin with until and no digit are a reason like any
// other.
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
		return k, errors.New("a known failure needs a reason after its day: pattern # until 2027-01-31: reason")
	}
	if k.Until, err = time.Parse(time.DateOnly, day); err != nil {
		return k, fmt.Errorf("%q is not a day such as 2027-01-31", day)
	}
	return k, nil
}

// concerns reports whether the run has a suite that the failure is about.
func (k *KnownFailure) concerns(suites []*specs.Suite) bool {
	return k.Suites == nil || slices.ContainsFunc(suites, func(s *specs.Suite) bool { return k.Suites.MatchString(s.File) })
}

// Expired reports whether the day until which the failure was known is over.
func (k *KnownFailure) Expired(now time.Time) bool {
	return !k.Until.IsZero() && !now.Before(k.Until.AddDate(0, 0, 1))
}
