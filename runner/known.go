package runner

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/mod/semver"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/specs"
)

// KnownFailure means that tests are expected to fail. An unexpected pass and a pattern that matches no test are
// Problems of the Summary.
type KnownFailure struct {
	Pattern *regexp.Regexp // over "file: description"
	Reason  string
	// Until is the last day (UTC) of the failure; zero means no end. Afterward, the
	// tests must pass, and the entry is a Problem of the Summary.
	Until time.Time

	// Of the entry in a list: its position, and the files that it applies to. If the run has none of them, the pattern
	// may match no test. Nil means all files.
	position source.Position
	suites   *regexp.Regexp
	// The first version of the engine with the failure, and the first one without it; "" means no limit. The entry
	// applies to no other version.
	since, before string
	sometimes     bool // the tests fail at random and may pass
}

// failing returns a known failure for each suite that must fail (valid-fail).
func failing(suites []*specs.Suite) (list []KnownFailure) {
	for _, s := range suites {
		if s.MustFail {
			list = append(list, KnownFailure{position: s.Root.Position,
				Pattern: regexp.MustCompile("^" + regexp.QuoteMeta(s.File) + ": "),
				Reason:  "its suite is one of valid-fail, whose tests must fail"})
		}
	}
	return list
}

// ParseKnownFailing parses a list of known failures. Each line is a regular expression over "file: description",
// blanks, #, blanks and a reason. Empty lines and lines that start with # are comments. The pattern ends at the first
// # after a blank: escape one as \x23. At the start of a reason, "until 2027-01-31:" sets the last day, "since 4.18:" the
// first version of the engine with the failure, "until 4.20.0:" the first one without it, and "since 4.18 until 4.20.0:"
// both; then "sometimes:" means that the tests may pass. The following lines apply to the files that a line "[for
// REGEXP]" matches; "[for all]" ends this.
func ParseKnownFailing(name string, r io.Reader) ([]KnownFailure, error) {
	var list []KnownFailure
	var suites *regexp.Regexp
	lines := bufio.NewScanner(r)
	var problems []error
	for n := 1; lines.Scan(); n++ {
		whole := lines.Text()
		if n == 1 {
			whole = strings.TrimPrefix(whole, "\ufeff") // the byte order mark of an editor
		}
		line := strings.TrimSpace(whole)
		if line == "" || line[0] == '#' {
			continue
		}
		at := source.Position{File: name, Line: n, Column: 1}
		var err error
		wrong := ""
		if files, found := strings.CutPrefix(line, "[for "); found && strings.HasSuffix(files, "]") {
			wrong = strings.TrimSpace(strings.TrimSuffix(files, "]"))
			suites, err = parseSuites(wrong)
		} else {
			var k KnownFailure
			k, wrong, err = parseKnown(line)
			k.position, k.suites = at, suites
			list = append(list, k)
		}
		if err != nil {
			before, _, _ := strings.Cut(whole, cmp.Or(wrong, line))
			at.Column = utf8.RuneCountInString(before) + 1
			problems = append(problems, fmt.Errorf("%s: %w", at, err))
		}
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", name, err))
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	return list, nil
}

// Unite adds the entries of another list. An entry that is in both counts once. Two entries for the same tests and
// versions that otherwise differ are an error.
func Unite(list, other []KnownFailure) ([]KnownFailure, error) {
	united := slices.Clip(list)
	for _, k := range other {
		i := slices.IndexFunc(list, func(has KnownFailure) bool {
			return has.Pattern.String() == k.Pattern.String() && fmt.Sprint(has.suites) == fmt.Sprint(k.suites) &&
				has.since == k.since && has.before == k.before
		})
		switch {
		case i < 0:
			united = append(united, k)
		case list[i].Reason != k.Reason:
			return nil, fmt.Errorf("%s: the entry contradicts the entry of %s, whose pattern is the same", k.position,
				list[i].position)
		}
	}
	return united, nil
}

func parseSuites(text string) (*regexp.Regexp, error) {
	switch text {
	case "":
		return nil, errors.New("[for REGEXP] names files, or all")
	case "all":
		return nil, nil
	}
	return Pattern(text)
}

// knownForm matches the pattern, the reason, the first version and the end at the
// start of the reason, and the rest. "since" and "until" without a digit are part of
// the reason.
var knownForm = regexp.MustCompile(`^(.*?)[ \t]+#\s*((?:(?:since[ \t]+(\d[^: \t]*)[ \t]*)?(?:until[ \t]+(\d[^:]*))?(?::\s*|$))?(.*))$`)

// parseKnown returns the known failure of a line, or an error and the part of the line that is wrong. "" means all of
// it.
func parseKnown(line string) (k KnownFailure, wrong string, err error) {
	parts := knownForm.FindStringSubmatch(line)
	if parts == nil || parts[2] == "" {
		return k, "", errors.New("a known failure needs a reason: pattern # reason")
	}
	since, until, rest := parts[3], strings.TrimSpace(parts[4]), parts[5]
	k.Reason, k.sometimes = parts[2], strings.HasPrefix(rest, "sometimes:")
	if k.Pattern, err = Pattern(parts[1]); err != nil {
		return k, parts[1], err
	}
	if rest == "" {
		return k, parts[2], errors.New("a known failure needs a reason after its limits: pattern # until 2027-01-31: reason")
	}
	if k.since = since; since != "" && !isVersion(since) {
		return k, since, fmt.Errorf("%q is not a version such as 4.20.0", since)
	}
	day, noDay := time.Parse(time.DateOnly, until)
	switch {
	case until == "":
	case noDay == nil:
		k.Until = day
	case isVersion(until):
		k.before = until
	default:
		return k, until, fmt.Errorf("%q is neither a date such as 2027-01-31 nor a version such as 4.20.0", until)
	}
	return k, "", nil
}

func isVersion(text string) bool { return semver.IsValid("v" + text) }

// holds reports whether a version of the engine is between since and before. A version that is not a number, such as
// the version of a build from source, counts as newer than all others.
func (k *KnownFailure) holds(version string) bool {
	if !isVersion(version) {
		return k.before == ""
	}
	older := func(than string) bool { return semver.Compare("v"+version, "v"+than) < 0 }
	return (k.since == "" || !older(k.since)) && (k.before == "" || older(k.before))
}

// expired reports whether the day Until has passed.
func (k *KnownFailure) expired(now time.Time) bool {
	return !k.Until.IsZero() && !now.Before(k.Until.AddDate(0, 0, 1))
}
