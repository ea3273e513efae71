package report_test

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// junitForm is the form of our JUnit reports: a part of what the schema that
// Jenkins uses (junit-10 of its xUnit plugin) allows, and in its order. A
// testcase may have many outcomes there; ours have at most one.
func junitForm() *regexp.Regexp {
	const counts = ` tests="\d+" failures="\d+" errors="\d+"`
	const seconds = ` time="\d+\.\d{3}"`
	const fault = ` message="[^"]*" type="[a-z-]+">(<!\[CDATA\[(?s:.*?)\]\]>)*</`
	const outcome = `(<skipped message="[^"]*"></skipped>|<error` + fault + `error>|<failure` + fault + `failure>)`
	const testcase = `<testcase name="[^"]*" classname="[^"]*"` + seconds + `>\s*(` + outcome + `\s*)?</testcase>\s*`
	const suite = `<testsuite name="[^"]*"` + counts + ` skipped="\d+"` + seconds +
		`( timestamp="\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")?>\s*(` + testcase + `)*</testsuite>\s*`
	return regexp.MustCompile(`^(<\?xml version="1.0" encoding="UTF-8"\?>\s*)?<testsuites name="utr"` + counts + seconds + `>\s*(` +
		suite + `)*</testsuites>\s*$`)
}

// junitProblem says what is wrong with a document, "" if nothing is: its XML,
// its form or its counts.
func junitProblem(document string) string {
	var whole struct {
		Attributes []xml.Attr `xml:",any,attr"`
		Suites     []struct {
			Attributes []xml.Attr `xml:",any,attr"`
			Tests      []struct {
				Outcome []struct{ XMLName xml.Name } `xml:",any"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(document), &whole); err != nil {
		return err.Error()
	}
	if !junitForm().MatchString(document) {
		return "another form"
	}
	counts := func(attributes []xml.Attr) (counts [4]string) { // those of the whole have no skipped
		for _, a := range attributes {
			if i := slices.Index([]string{"tests", "failures", "errors", "skipped"}, a.Name.Local); i >= 0 {
				counts[i] = a.Value
			}
		}
		return counts
	}
	var all [3]int
	for _, s := range whole.Suites {
		n := map[string]int{}
		for _, c := range s.Tests {
			for _, outcome := range c.Outcome {
				n[outcome.XMLName.Local]++
			}
		}
		if got, want := fmt.Sprint(counts(s.Attributes)), fmt.Sprint([]int{len(s.Tests), n["failure"], n["error"], n["skipped"]}); got != want {
			return "a suite counts " + got + ", not " + want
		}
		for i, more := range []int{len(s.Tests), n["failure"], n["error"]} {
			all[i] += more
		}
	}
	if got, want := fmt.Sprint(counts(whole.Attributes)), fmt.Sprintf("[%d %d %d ]", all[0], all[1], all[2]); got != want {
		return "the whole counts " + got + ", not " + want
	}
	return ""
}

// A control character, half a surrogate or a broken byte in a message must
// not make the document unreadable.
func FuzzJUnitIsWellFormed(f *testing.F) {
	f.Add("\x00\x1b[0m", "]]>", "\xff")
	f.Add("<&\"'", "\ufffe\uffff", "-->")
	f.Fuzz(func(t *testing.T, description, reason, diff string) {
		v := &result.Verdict{Test: result.TestID{File: description, Description: description}, Status: result.Failed, Reason: reason,
			Mismatches: []result.Mismatch{{Path: reason, Message: description, Diff: diff}}}
		s := *v
		s.Status = result.Skipped
		text := string(generate(report.JUnit(), []result.Note{finished(v), finished(&s), result.RunFinished{}}))
		testkit.Equal(t, text, junitProblem(text), "")
	})
}
