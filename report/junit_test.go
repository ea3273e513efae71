package report_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// element is what the schema of JUnit reports that Jenkins reads (junit-10 of
// its xUnit plugin) says of an element, as far as we use it.
type element struct {
	required, optional map[string]*regexp.Regexp // attributes
	children           []string
	atMostOne          bool // child
	text               bool
}

var (
	anything  = regexp.MustCompile(``)
	number    = regexp.MustCompile(`^\d+$`)
	duration  = regexp.MustCompile(`^\d+\.\d{3}$`)
	timestamp = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$`)
)

type attributes = map[string]*regexp.Regexp

var fault = element{optional: attributes{"message": anything, "type": anything}, text: true}

// junitElements is that schema. A testcase may have many outcomes there; ours
// have at most one.
var junitElements = map[string]element{
	"testsuites": {
		optional: attributes{"name": anything, "time": duration, "tests": number, "failures": number, "errors": number},
		children: []string{"testsuite"},
	},
	"testsuite": {
		required: attributes{"name": anything, "tests": number},
		optional: attributes{"failures": number, "errors": number, "skipped": number, "time": duration, "timestamp": timestamp},
		children: []string{"testcase"},
	},
	"testcase": {
		required:  attributes{"name": anything},
		optional:  attributes{"classname": anything, "time": duration},
		children:  []string{"skipped", "error", "failure"},
		atMostOne: true,
	},
	"skipped": fault, "error": fault, "failure": fault,
}

// node is an element of a document, whatever it is called.
type node struct {
	name       string
	attributes map[string]string
	children   []*node
	text       string
}

func parseXML(document string) (*node, error) {
	root := &node{}
	open := []*node{root}
	for d := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				n.attributes[a.Name.Local] = a.Value
			}
			at.children = append(at.children, n)
			open = append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			at.text += string(token)
		}
	}
	if len(root.children) != 1 || root.children[0].name != "testsuites" {
		return nil, errors.New("the root is not one testsuites")
	}
	return root.children[0], nil
}

// junitProblems says what the schema does not allow, and which counts are not
// those of the elements.
func junitProblems(document string) (all []string) {
	root, err := parseXML(document)
	if err != nil {
		return []string{err.Error()}
	}
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	var check func(n *node)
	check = func(n *node) {
		rule := junitElements[n.name]
		for name := range rule.required {
			if _, found := n.attributes[name]; !found {
				say("%s has no %s", n.name, name)
			}
		}
		for name, value := range n.attributes {
			form := rule.required[name]
			if form == nil {
				form = rule.optional[name]
			}
			if form == nil || !form.MatchString(value) {
				say("%s has %s=%q", n.name, name, value)
			}
		}
		if !rule.text && strings.TrimSpace(n.text) != "" {
			say("%s has the text %q", n.name, strings.TrimSpace(n.text))
		}
		if rule.atMostOne && len(n.children) > 1 {
			say("%s has %d children", n.name, len(n.children))
		}
		for _, c := range n.children {
			if !strings.Contains(" "+strings.Join(rule.children, " ")+" ", " "+c.name+" ") {
				say("%s has a child %s", n.name, c.name)
				continue
			}
			check(c)
		}
	}
	check(root)
	for attribute, name := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"} {
		for _, n := range append([]*node{root}, root.children...) {
			if told, found := n.attributes[attribute]; found && told != strconv.Itoa(count(n, name)) {
				say("%s has %s=%s, and %d times %s", n.name, attribute, told, count(n, name), name)
			}
		}
	}
	return all
}

func count(n *node, name string) (sum int) {
	for _, c := range n.children {
		if c.name == name {
			sum++
		}
		sum += count(c, name)
	}
	return sum
}

// What is written is what Jenkins and those that follow it read.
func TestJUnitIsWhatJenkinsReads(t *testing.T) {
	document := string(generate(report.JUnit(), run()))
	for _, name := range []string{"testsuite", "testcase", "skipped", "error", "failure"} {
		if !strings.Contains(document, "<"+name+" ") {
			t.Errorf("no %s is looked at", name)
		}
	}
	for _, p := range junitProblems(document) {
		t.Error(p)
	}
}

// A document that Jenkins would not take, or would show with wrong numbers, is
// noticed.
func TestJUnitProblems(t *testing.T) {
	const good = `<testsuites name="utr" tests="2" failures="1" errors="0" time="0.100"><testsuite name="s" tests="2" failures="1" errors="0" skipped="1" time="0.100" timestamp="2026-01-02T03:04:05">` +
		`<testcase name="a" classname="c" time="0.050"><failure message="m" type="failed">text</failure></testcase><testcase name="b" classname="c" time="0.050"><skipped message="m"></skipped></testcase></testsuite></testsuites>`
	for _, row := range []struct{ reason, old, mutant, want string }{
		{"nothing is wrong", "", "", ""},
		{"no XML", "</testsuites>", "", "unexpected EOF"},
		{"another root", "testsuites", "results", "the root is not one testsuites"},
		{"an element that does not exist", "<failure ", "<flaky/><failure ", "testcase has a child flaky"},
		{"two outcomes", "<failure ", `<error message="m"/><failure `, "testcase has 2 children"},
		{"an attribute that does not exist", `skipped="1"`, `known="1"`, `testsuite has known="1"`},
		{"a suite without a name", `name="s" `, "", "testsuite has no name"},
		{"a test without a name", `name="a" `, "", "testcase has no name"},
		{"a time with a comma", `time="0.100" timestamp`, `time="0,100" timestamp`, `testsuite has time="0,100"`},
		{"a time stamp with a zone", "03:04:05", "03:04:05Z", `timestamp="2026-01-02T03:04:05Z"`},
		{"a count that is too high", `tests="2" failures="1" errors="0" skipped`, `tests="3" failures="1" errors="0" skipped`, "testsuite has tests=3, and 2 times testcase"},
		{"a failure that is not counted", `name="utr" tests="2" failures="1"`, `name="utr" tests="2" failures="0"`, "testsuites has failures=0, and 1 times failure"},
		{"a text where none is read", "<failure ", "so <failure ", `testcase has the text "so"`},
	} {
		got := strings.Join(junitProblems(strings.ReplaceAll(good, row.old, row.mutant)), "\n")
		if row.old == "" {
			got = strings.Join(junitProblems(good), "\n")
		}
		if (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
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
		text := string(generate(report.JUnit(), []result.Note{result.TestFinished{Verdict: v}, result.TestFinished{Verdict: &s}, result.RunFinished{}}))
		if problems := junitProblems(text); len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, text)
		}
	})
}

// Of many long explanations the later ones are short, and say so: what is kept
// until the run is over is bounded.
func TestJUnitIsBounded(t *testing.T) {
	v := &result.Verdict{Status: result.Failed, Clients: []result.ClientLog{{Client: "c", Events: make([]result.Event, 500)}}}
	for i := range v.Clients[0].Events {
		v.Clients[0].Events[i].Address = strings.Repeat("a", 150)
	}
	var notes []result.Note
	for range 160 {
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	text := generate(report.JUnit(), append(notes, result.RunFinished{}))
	if n := len(text); n < 8<<20 || n > 10<<20 {
		t.Errorf("%d bytes", n)
	}
	faults := strings.Split(string(text), "<failure ")[1:]
	if first, last := faults[0], faults[len(faults)-1]; len(faults) != 160 || len(first) > 66<<10 || len(last) > 3<<10 || !strings.Contains(first, " lines left out\n") || !strings.Contains(last, " lines left out\n") {
		t.Errorf("%d faults, the first has %d bytes, the last %d", len(faults), len(first), len(last))
	}
}
