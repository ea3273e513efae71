package retry

import (
	"slices"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

func TestRulesAreNumberedOnce(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, p := range Policies() {
		named, err := Named(p.Name)
		testkit.Check(t, err)
		testkit.Equal(t, "the name of a policy", named.Name, p.Name)
		for _, id := range p.Rules.IDs() {
			used[id] = true
		}
	}
	for _, r := range slices.Concat(Rules(), TransactionRules()) {
		if r.ID == "" || seen[r.ID] || !used[r.ID] || r.Statement == "" || r.Section == "" || r.Revision == "" {
			t.Errorf("rule %+v is a duplicate, is in no policy, or lacks a statement, section or revision", r)
		}
		seen[r.ID] = true
	}
	if len(table) > 64 || len(transactionTable) > 64 {
		t.Error("a RuleSet has too few bits")
	}
	p, err := Named("")
	testkit.Check(t, err)
	testkit.Equal(t, "the default policy", p.Name, "current")
	_, err = Named("retryable-reads@1999")
	testkit.ErrorContains(t, err, "retryable-reads@2024")
}

func TestOperations(t *testing.T) {
	for _, o := range append(Operations(), Operation{Name: "ping", Class: operations.Generic, why: Lookup("runCommand").why}) {
		testkit.Equal(t, o.Name, Lookup(o.Name), o)
		if o.RetryableRead && o.Class != operations.Read || o.RetryableWrite && o.Class != operations.Write || o.Name == "" {
			t.Errorf("%+v has another class", o)
		}
	}
}

func TestRetryableWriteError(t *testing.T) {
	for _, r := range []struct {
		reason, policy string
		f              Failure
		want           bool
	}{
		{"the label", "current", Failure{Code: 1, Labels: []string{codes.RetryableWriteError}}, true},
		{"a code without the label", "current", Failure{Code: 91}, false},
		{"the label, before labels", "retryable-writes@2018-03-14", Failure{Code: 1, Labels: []string{codes.RetryableWriteError}}, false},
		{"a code, before labels", "retryable-writes@2018-03-14", Failure{Code: 91}, true},
		{"a message, before labels", "retryable-writes@2018-03-14",
			Failure{Code: 1, Message: "not master: stepping down"}, true},
		{"a message in capitals, before labels", "retryable-writes@2018-03-14",
			Failure{Code: 1, Message: "Not Master; Node Is Recovering"}, false},
		{"another code and message", "retryable-writes@2018-03-14", Failure{Code: 1, Message: "interrupted"}, false},
	} {
		p, err := Named(r.policy)
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, p.RetryableWriteError(r.f), r.want)
	}
}

// failing returns the state of an attempt with the current policy.
func failing(op string, attempt int) State { return failingUnder("", op, attempt) }

func failingUnder(policy, op string, attempt int) State {
	p, _ := Named(policy)
	return State{Policy: p, Attempt: attempt, Chosen: Chosen{Address: "a", Wire: 21, RetryableWrites: true},
		Settings: Settings{Operation: Lookup(op), RetryReads: true, RetryWrites: true}}
}

var listedCodes = []int32{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}

func TestEveryListedCodeIsRetryable(t *testing.T) {
	writesOf2018 := []int32{6, 7, 64, 89, 91, 189, 9001, 10107, 11600, 11602, 13435, 13436}
	for _, r := range []struct {
		policy, operation string
		codes             []int32
	}{{"current", "find", listedCodes}, {"retryable-reads@2024", "find", listedCodes}, {"retryable-writes@2018-03-14",
		"insert", writesOf2018}} {
		for code := range int32(20000) {
			_, d := Next(failingUnder(r.policy, r.operation, 1), Input{Kind: Failed, Failure: Failure{Kind: Server, Code: code}})
			if retried := d.Action == Select; retried != slices.Contains(r.codes, code) {
				t.Errorf("%s, code %d: retried %v", r.policy, code, retried)
			}
		}
	}
}

// TestBackoffsDoNotOverflow tests a long backoff. testdata/overload.txt has shorter ones.
func TestBackoffsDoNotOverflow(t *testing.T) {
	s, retries := failing("find", 900), 1000
	s.Settings.MaxAdaptiveRetries = &retries
	_, d := Next(s, Input{Kind: Failed, Jitter: 1,
		Failure: Failure{Kind: Server, Code: 462, Labels: []string{codes.SystemOverloadedError, codes.RetryableError}}})
	testkit.Equal(t, "the delay", d.Delay, 10*time.Second)
}

// TestStatesAreValues checks that modifying a decision changes neither its state nor another decision from that state.
func TestStatesAreValues(t *testing.T) {
	s := failing("find", 1)
	s.Chosen.Sharded, s.deprioritized = true, append(make([]string, 0, 4), "a")
	fail := func(server string) (State, Decision) {
		return Next(s, Input{Kind: Failed, Failure: Failure{Kind: Network, Server: server}})
	}
	next, d := fail("b")
	other, _ := fail("c")
	d.Deprioritized[0] = "changed by the caller"
	testkit.Equal(t, "deprioritized", [][]string{s.deprioritized, next.deprioritized, other.deprioritized},
		[][]string{{"a"}, {"a", "b"}, {"a", "c"}})
}

func TestAnInputOutOfTurnEndsTheOperation(t *testing.T) {
	s, d := Next(failing("find", 1), Input{Kind: 99})
	testkit.Same(t, "error", d.Raise, Failure{Kind: Client, Attempt: 1})
	testkit.Equal(t, "ended", s.ended && d.Action == ReturnError, true)
	if _, d := NextTransaction(TransactionState{}, Input{Kind: 99}); d.Action != ReturnError {
		t.Errorf("%+v", d)
	}
}

// A dated policy words each rule as of its date. The policies of 2018 and before also have rules about transactions and
// others that are newer, because the engine needs them.
func TestRulesAreOfTheirTime(t *testing.T) {
	for _, p := range Policies() {
		for _, r := range p.RulesInForce() {
			if p.date >= "2019" && r.Revision > p.date {
				t.Errorf("%s: %s is of %s", p.Name, r.ID, r.Revision)
			}
		}
	}
}
