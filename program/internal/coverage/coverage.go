// Package coverage counts what suites exercise: operations, fail points, error codes and labels, events and
// operators, and the rules of the retry core that applied in a run.
package coverage

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	wire "github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// The subjects.
const (
	ops      = "operations"
	rules    = "retry rules"
	codes    = "error codes"
	labels   = "error labels"
	failing  = "commands of fail points"
	events   = "event types"
	operator = "special operators"
	spans    = "spans"
)

// Count is the number of tests that exercise each thing, by subject and name.
type Count map[string]map[string]int

// Of counts the traits of all tests.
func Of(suites []*specs.Suite) Count {
	c := Count{}
	for _, s := range suites {
		for i := range s.Tests {
			t := s.Traits(i)
			c.add(ops, t.Operations)
			c.add(codes, t.CodeNames())
			c.add(labels, t.Labels)
			c.add(failing, t.FailCommands)
			c.add(events, t.Events)
			c.add(operator, t.Operators)
			c.add(spans, t.Spans)
		}
	}
	return c
}

// Rules counts the tests of a run in which each rule applied, and reports whether there were any decisions: a
// run records the events of passed tests only on request.
func (c Count) Rules(verdicts []*result.Verdict) bool {
	c[rules] = map[string]int{}
	for _, v := range verdicts {
		applied := map[string]bool{}
		for _, o := range v.Operations {
			for _, d := range o.Outcome.Decisions {
				for _, rule := range d.Rules {
					applied[rule] = true
				}
			}
		}
		c.add(rules, slices.Collect(maps.Keys(applied)))
	}
	return len(c[rules]) > 0
}

func (c Count) add(subject string, names []string) {
	if c[subject] == nil {
		c[subject] = map[string]int{}
	}
	for _, name := range names {
		c[subject][name]++
	}
}

// Section is a subject with all its things, exercised or not.
type Section struct {
	Subject string `json:"subject"`
	Rows    []Row  `json:"rows"`
}

// Row is a thing with the number of tests that exercise it.
type Row struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"` // such as the statement of a rule
	Tests int    `json:"tests"`
	// Against is the number of tests in the suites to compare with, nil without a comparison.
	Against *int `json:"against,omitempty"`
}

// Sections returns all subjects. Rows without tests are in the format or the retry core, but not exercised.
// Against may be nil.
func Sections(of, against Count) (all []Section) {
	about := known()
	for _, subject := range []string{ops, rules, codes, labels, failing, events, operator, spans} {
		if subject == rules && of[rules] == nil {
			continue
		}
		names := about[subject]
		for _, c := range []Count{of, against} {
			for name := range c[subject] {
				names[name] += "" // adds an unknown name
			}
		}
		s := Section{Subject: subject}
		for _, name := range slices.SortedFunc(maps.Keys(names), naturally) {
			row := Row{Name: name, About: names[name], Tests: of[subject][name]}
			if against[subject] != nil {
				n := against[subject][name]
				row.Against = &n
			}
			s.Rows = append(s.Rows, row)
		}
		all = append(all, s)
	}
	return all
}

// naturally orders R2 before R10, and 91 before 10107.
func naturally(a, b string) int {
	letters := func(s string) string { return strings.TrimRight(s, "0123456789") }
	number := func(s string) int {
		n, err := strconv.Atoi(s[len(letters(s)):])
		if err != nil {
			return -1
		}
		return n
	}
	return cmp.Or(cmp.Compare(letters(a), letters(b)), cmp.Compare(number(a), number(b)))
}

// known returns the names of each subject in the format and the retry core, with a text about them. Rules and
// codes are the codes of the current policy.
func known() map[string]map[string]string {
	all := map[string]map[string]string{ops: {}, rules: {}, codes: {}, labels: {}, failing: {}, events: {}, operator: {},
		spans: {"transaction": ""}}
	for _, o := range operations.All() {
		all[ops][string(o.Kind)+"."+o.Name] = ""
		if command := operations.SpanName(o.Name); command != o.Name {
			all[spans]["operation "+command] = ""
		}
	}
	policy := retry.Policies()[0]
	for _, r := range policy.RulesInForce() {
		all[rules][r.ID] = r.Statement
	}
	for _, code := range policy.ReadCodes {
		all[codes][strconv.Itoa(int(code))] = "a retryable read error"
	}
	for _, label := range []string{wire.NoWritesPerformed, wire.RetryableError, wire.RetryableWriteError,
		wire.SystemOverloadedError, wire.TransientTransactionError, wire.UnknownTransactionCommitResult} {
		all[labels][label] = ""
	}
	for _, monitor := range []result.Monitor{result.MonitorCommand, result.MonitorCMAP, result.MonitorSDAM} {
		for _, t := range result.EventTypes(monitor) {
			all[events][string(t)] = string(monitor)
		}
	}
	for _, name := range specs.Operators() {
		all[operator][name] = ""
	}
	return all
}
