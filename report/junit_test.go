package report_test

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

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
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(document), &whole); err != nil {
		return err.Error()
	}
	if !junitForm().MatchString(document) {
		return "another form"
	}
	wrong := func(attributes []xml.Attr, want map[string]int) string {
		for _, a := range attributes {
			if n, counted := want[a.Name.Local]; counted && a.Value != strconv.Itoa(n) {
				return fmt.Sprintf("%s=%s, not %d", a.Name.Local, a.Value, n)
			}
		}
		return ""
	}
	all := map[string]int{}
	for _, s := range whole.Suites {
		n := map[string]int{"tests": len(s.Tests), "failures": 0, "errors": 0, "skipped": 0}
		for _, c := range s.Tests {
			for name, outcome := range map[string]*struct{}{"failures": c.Failure, "errors": c.Error, "skipped": c.Skipped} {
				if outcome != nil {
					n[name]++
				}
			}
		}
		if w := wrong(s.Attributes, n); w != "" {
			return w
		}
		for name := range n {
			all[name] += n[name]
		}
	}
	return wrong(whole.Attributes, all)
}

// A document that Jenkins would not accept, or would show with wrong numbers, is
// noticed; ours is accepted.
func TestJUnitIsWhatJenkinsReads(t *testing.T) {
	const good = `<testsuites name="utr" tests="2" failures="1" errors="0" time="0.100">` +
		`<testsuite name="s" tests="2" failures="1" errors="0" skipped="1" time="0.100" timestamp="2026-01-02T03:04:05">` +
		`<testcase name="a" classname="c" time="0.050"><failure message="m" type="failed"><![CDATA[text]]></failure></testcase>` +
		`<testcase name="b" classname="c" time="0.050"><skipped message="m"></skipped></testcase></testsuite></testsuites>`
	for _, document := range []string{good, string(generate(report.JUnit(), run()))} {
		if p := junitProblem(document); p != "" {
			t.Errorf("%s in\n%s", p, document)
		}
	}
	for _, row := range []struct{ reason, old, mutant, want string }{
		{"XML without an end", "</testsuites>", "", "unexpected EOF"},
		{"another root", "testsuites", "results", "another form"},
		{"an element that does not exist", "<failure ", "<flaky/><failure ", "another form"},
		{"two outcomes", "<failure ", `<error message="m"/><failure `, "another form"},
		{"an attribute that does not exist", `skipped="1"`, `known="1"`, "another form"},
		{"a suite without a name", `name="s" `, "", "another form"},
		{"a time with a comma", `time="0.100" timestamp`, `time="0,100" timestamp`, "another form"},
		{"a time stamp with a zone", "03:04:05", "03:04:05Z", "another form"},
		{"a count that is too high", `tests="2" failures="1" errors="0" skipped`, `tests="3" failures="1" errors="0" skipped`, "tests=3, not 2"},
		{"a failure that is not counted", `name="utr" tests="2" failures="1"`, `name="utr" tests="2" failures="0"`, "failures=0, not 1"},
		{"a text where none is read", "<failure ", "so <failure ", "another form"},
	} {
		if got := junitProblem(strings.ReplaceAll(good, row.old, row.mutant)); !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
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
		if p := junitProblem(text); p != "" {
			t.Fatalf("%s\n%s", p, text)
		}
	})
}
