package report_test

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// junitForm matches our JUnit reports, a subset of the schema that Jenkins uses
// (junit-10 of its xUnit plugin) in which a testcase has at most one outcome.
func junitForm() *regexp.Regexp {
	const counts = ` tests="\d+" failures="\d+" errors="\d+"`
	const seconds = ` time="\d+\.\d{3}"`
	const fault = ` message="[^"]*" type="[a-z-]+">(<!\[CDATA\[(?s:.*?)\]\]>)*</`
	const outcome = `(<skipped message="[^"]*"></skipped>|<error` + fault + `error>|<failure` + fault + `failure>)`
	const testcase = `<testcase name="[^"]*" classname="[^"]*"` + seconds + `>\s*(` + outcome + `\s*)?</testcase>\s*`
	const suite = `<testsuite name="[^"]*"` + counts + ` skipped="\d+"` + seconds +
		`( timestamp="\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")?>\s*(` + testcase + `)*</testsuite>\s*`
	return regexp.MustCompile(`^(<\?xml version="1.0" encoding="UTF-8"\?>\s*)?<testsuites name="utr"` + counts +
		seconds + `>\s*(` +
		suite + `)*</testsuites>\s*$`)
}

// junitCounts are the counts of a suite, or of the document. The latter has no skipped.
type junitCounts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

// junitProblem describes the first error in the XML, structure or counts of a
// document, or returns "".
func junitProblem(document string) string {
	var whole struct {
		junitCounts
		Suites []struct {
			junitCounts
			Tests []struct {
				Failures []struct{} `xml:"failure"`
				Errors   []struct{} `xml:"error"`
				Skipped  []struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(document), &whole); err != nil {
		return err.Error()
	}
	if !junitForm().MatchString(document) {
		return "syntax"
	}
	var all junitCounts
	for _, s := range whole.Suites {
		n := junitCounts{Tests: len(s.Tests)}
		for _, c := range s.Tests {
			n.Failures, n.Errors, n.Skipped = n.Failures+len(c.Failures), n.Errors+len(c.Errors), n.Skipped+len(c.Skipped)
		}
		if s.junitCounts != n {
			return fmt.Sprintf("a suite counts %v, not %v", s.junitCounts, n)
		}
		all.Tests, all.Failures, all.Errors = all.Tests+n.Tests, all.Failures+n.Failures, all.Errors+n.Errors
	}
	if whole.junitCounts != all {
		return fmt.Sprintf("the document counts %v, not %v", whole.junitCounts, all)
	}
	return ""
}

// Control characters, surrogates and invalid bytes in messages do not make the
// document invalid.
func FuzzJUnitIsWellFormed(f *testing.F) {
	f.Add("\x00\x1b[0m", "]]>", "\xff")
	f.Add("<&\"'", "\ufffe\uffff", "-->")
	f.Fuzz(func(t *testing.T, description, reason, diff string) {
		v := &result.Verdict{Test: result.TestID{File: description, Description: description}, Status: result.Failed,
			Reason:   reason,
			Evidence: result.Evidence{Mismatches: []result.Mismatch{{Path: reason, Message: description, Diff: diff}}}}
		s := *v
		s.Status = result.Skipped
		text := string(generate(report.JUnit(), []result.Note{finished(v), finished(&s), result.RunFinished{}}))
		testkit.Equal(t, text, junitProblem(text), "")
	})
}
