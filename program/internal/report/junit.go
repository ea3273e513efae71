package report

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unique"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// JUnit writes an XML document at the end of the run: a testsuite for each file, deployment and cell in the order in
// which their first tests ended, a testcase for each test. Failed and flaky tests are failures, broken tests errors,
// and known-failing tests skipped. Problems of the run are a failure, and breaks errors, of a testsuite "utr".
func JUnit() Generator {
	j := &junit{byKey: map[[2]string]*junitSuite{}}
	return hooks{start: func(n result.RunStarted) { j.start = n.Time }, test: j.add, finish: j.document}.generator(&j.out)
}

type junit struct {
	start  time.Time
	suites []*junitSuite
	byKey  map[[2]string]*junitSuite // file, where → one of suites
	held   int                       // bytes of all faults
	out    bytes.Buffer
}

// The elements, with attributes and children in the order of the schema.
type (
	// The schema of Jenkins has no total of skipped tests.
	junitSuites struct {
		XMLName  xml.Name      `xml:"testsuites"`
		Name     string        `xml:"name,attr"`
		Tests    int           `xml:"tests,attr"`
		Failures int           `xml:"failures,attr"`
		Errors   int           `xml:"errors,attr"`
		Time     string        `xml:"time,attr"`
		Suites   []*junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      string      `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Cases     []junitCase `xml:"testcase"`

		took time.Duration
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Skipped   *junitSkipped `xml:"skipped"`
		Error     *junitFault   `xml:"error"`
		Failure   *junitFault   `xml:"failure"`
		SystemOut string        `xml:"system-out,omitempty"` // warnings of a test that passed
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",cdata"`
	}
)

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func (j *junit) add(v *result.Verdict) {
	key := [2]string{v.Test.File, v.Test.Where()}
	s := j.byKey[key]
	if s == nil {
		name := v.Test.File
		add(&name, v.Test.Where() != "", " [%s]", v.Test.Where())
		s = &junitSuite{Name: printable(name)}
		if began := cmp.Or(v.Started, j.start); !began.IsZero() { // v.Started is in an earlier run if the cell was kept
			s.Timestamp = began.UTC().Format("2006-01-02T15:04:05")
		}
		j.suites, j.byKey[key] = append(j.suites, s), s
	}
	name := v.Test.Description
	add(&name, v.Test.Iteration > 1, " #%d", v.Test.Iteration)
	c := junitCase{Name: printable(name), Classname: s.Name, Time: seconds(v.Duration)}
	switch v.Status {
	case result.Passed:
		for _, w := range v.Warnings {
			c.SystemOut = strings.TrimPrefix(c.SystemOut+"\n"+printable("warning: "+w), "\n")
		}
	case result.Failed, result.Flaky:
		s.Failures++
		c.Failure = j.fault(v)
	case result.Broken:
		s.Errors++
		c.Error = j.fault(v)
	case result.Skipped, result.KnownFailing:
		reason := "known-failing: " + v.Reason
		if v.Status == result.Skipped {
			reason = skipReason(v)
		}
		s.Skipped++
		c.Skipped = &junitSkipped{unique.Make(printable(reason)).Value()} // many tests have the same one
	}
	s.Tests++
	s.took += v.Duration
	s.Cases = append(s.Cases, c)
}

// fault contains the explanation of the text report.
func (j *junit) fault(v *result.Verdict) *junitFault {
	t := &text{options: TextOptions{Verbose: true}, rerunFirst: true}
	t.explain(v, "")
	limit := faultBytes
	if j.held > allFaultBytes {
		limit = lateFaultBytes
	}
	explained := printable(shorten(strings.TrimPrefix(t.buffer.String(), "\n"), limit))
	j.held += len(explained)
	return &junitFault{Message: printable(failureOf(v).Why), Type: string(v.Status), Text: explained}
}

// The limits of the text of a fault. All texts are in memory until the run ends, so
// after allFaultBytes they are shorter.
const (
	faultBytes     = 64 << 10
	allFaultBytes  = 8 << 20
	lateFaultBytes = 2 << 10
)

// shorten removes lines from the middle of a text that has more bytes than limit.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := s[:limit*3/4], s[len(s)-limit/4:]
	head, tail = head[:strings.LastIndexByte(head, '\n')+1], tail[strings.IndexByte(tail, '\n')+1:]
	lines := strings.Count(s[len(head):len(s)-len(tail)], "\n")
	return fmt.Sprintf("%s… %s left out\n%s", head, plural.Of(lines, "line"), tail)
}

func (j *junit) document(s result.Summary) {
	if run := ofRun(s); len(run.Cases) > 0 {
		j.suites = append(j.suites, run)
	}
	all := junitSuites{Name: "utr", Time: seconds(s.Duration), Suites: j.suites}
	for _, suite := range j.suites {
		suite.Time = seconds(suite.took)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
	}
	j.out.WriteString(xml.Header)
	e := xml.NewEncoder(&j.out)
	e.Indent("", "  ")
	_ = e.Encode(all) // no field can fail to encode
	j.out.WriteByte('\n')
}

// ofRun returns a suite with a case for each thing that broke, and one for all problems. The names of cases are the
// same in every run, so that histories match: what they say of hosts is in the messages.
func ofRun(s result.Summary) *junitSuite {
	run := &junitSuite{Name: "utr"}
	add := func(name, kind string, texts []string) *junitFault {
		run.Cases = append(run.Cases, junitCase{Name: printable(name), Classname: "utr", Time: seconds(0)})
		run.Tests++
		return &junitFault{Message: printable(texts[0]), Type: kind, Text: printable(strings.Join(texts, "\n"))}
	}
	reasons := map[string][]string{}
	for _, b := range s.Breaks {
		reasons[b.Subject()] = append(reasons[b.Subject()], b.Reason)
	}
	for _, b := range s.Breaks {
		if texts := reasons[b.Subject()]; texts != nil {
			kind := string(result.Broken)
			if b.Interrupted() {
				kind = "interrupted"
			}
			fault := add(b.Subject(), kind, texts)
			run.Cases[run.Errors].Error = fault
			run.Errors++
			delete(reasons, b.Subject())
		}
	}
	if len(s.Problems) > 0 {
		fault := add("problems of the run", "problem", s.Problems)
		run.Cases[run.Errors].Failure = fault
		run.Failures++
	}
	return run
}

// printable replaces characters that XML 1.0 does not allow, and invalid UTF-8.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 || r == '\t' || r == '\n' || r == '\r' {
			return r
		}
		return '\uFFFD'
	}, s)
}
