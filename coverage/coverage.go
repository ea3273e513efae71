// Package coverage counts what suites exercise: operations, fail points, error codes
// and labels, events and operators, and the rules of the retry core that decided in
// a run of them.
package coverage

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/operations"
)

// The subjects of which things are counted.
const (
	ops      = "operations"
	rules    = "retry rules"
	codes    = "error codes"
	labels   = "error labels"
	failing  = "commands of fail points"
	events   = "event types"
	operator = "special operators"
)

// Count has the number of tests that exercise each thing, by subject and name.
type Count map[string]map[string]int

// Of counts the traits of tests.
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
		}
	}
	return c
}

// Rules counts the tests of a run in which a rule decided, and reports whether there
// were decisions: a run keeps those of tests that passed only if it is told to.
func (c Count) Rules(verdicts []*result.Verdict) bool {
	c[rules] = map[string]int{}
	for _, v := range verdicts {
		fired := map[string]bool{}
		for _, o := range v.Operations {
			for _, d := range o.Outcome.Decisions {
				for _, rule := range d.Rules {
					fired[rule] = true
				}
			}
		}
		c.add(rules, slices.Collect(maps.Keys(fired)))
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

// Section is a subject with what is known of it and what occurs.
type Section struct {
	Subject string `json:"subject"`
	Rows    []Row  `json:"rows"`
}

// Row is a thing with the number of tests that exercise it.
type Row struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"` // what a rule says
	Tests int    `json:"tests"`
	// Against is the number of tests in the suites to compare with, nil without a
	// comparison.
	Against *int `json:"against,omitempty"`
}

// Sections lists all subjects. A row without tests is known to the format or to the
// retry core, and never exercised. Against may be nil.
func Sections(of, against Count) (all []Section) {
	for _, subject := range []struct {
		name  string
		known map[string]string // with what is said of each
	}{
		{ops, knownOperations()},
		{rules, knownRules()},
		{codes, knownCodes()},
		{labels, named("NoWritesPerformed", "RetryableError", "RetryableWriteError", "SystemOverloadedError",
			"TransientTransactionError", "UnknownTransactionCommitResult")},
		{failing, nil},
		{events, knownEvents()},
		{operator, named(specs.Operators()...)},
	} {
		if subject.name == rules && of[rules] == nil {
			continue
		}
		names := maps.Clone(subject.known)
		if names == nil {
			names = map[string]string{}
		}
		for _, c := range []Count{of, against} {
			for name := range c[subject.name] {
				names[name] = subject.known[name]
			}
		}
		s := Section{Subject: subject.name}
		for _, name := range slices.SortedFunc(maps.Keys(names), naturally) {
			row := Row{Name: name, About: names[name], Tests: of[subject.name][name]}
			if against[subject.name] != nil {
				n := against[subject.name][name]
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

func named(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = ""
	}
	return out
}

func knownOperations() map[string]string {
	out := map[string]string{}
	for _, o := range operations.All() {
		out[string(o.Kind)+"."+o.Name] = ""
	}
	return out
}

// knownRules are those of the current policy.
func knownRules() map[string]string {
	out := map[string]string{}
	for _, r := range retry.Policies()[0].InForce() {
		out[r.ID] = r.Statement
	}
	return out
}

func knownCodes() map[string]string {
	out := map[string]string{}
	for _, code := range retry.Policies()[0].ReadCodes {
		out[strconv.Itoa(int(code))] = "a retryable read error"
	}
	return out
}

func knownEvents() map[string]string {
	out := map[string]string{}
	for _, monitor := range []result.Monitor{result.MonitorCommand, result.MonitorCMAP, result.MonitorSDAM} {
		for _, t := range result.EventTypes(monitor) {
			out[string(t)] = string(monitor)
		}
	}
	return out
}
