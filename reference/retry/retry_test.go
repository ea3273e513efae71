package retry

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRulesAreNumberedOnce(t *testing.T) {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, p := range Policies() {
		if named, err := Named(p.Name); err != nil || named.Name != p.Name {
			t.Errorf("%s is not found by its name: %v", p.Name, err)
		}
		for _, id := range p.Rules {
			used[id] = true
		}
	}
	for _, r := range slices.Concat(Rules(), TransactionRules()) {
		if r.ID == "" || seen[r.ID] || !used[r.ID] || r.Statement == "" || r.Section == "" || r.Revision == "" {
			t.Errorf("rule %+v stands twice, belongs to no policy, or lacks its statement, section or revision", r)
		}
		seen[r.ID] = true
		delete(used, r.ID)
	}
	for id := range used {
		t.Errorf("%s is the rule of a policy, and of no table", id)
	}
	if p, err := Named(""); err != nil || p.Name != "current" {
		t.Errorf("the policy without a name: %v", err)
	}
	if _, err := Named("retryable-reads@1999"); err == nil || !strings.Contains(err.Error(), "retryable-reads@2024") {
		t.Errorf("an unknown policy: %v", err)
	}
}

// TestNoRuleIsYoungerThanItsPolicy: what explain prints of a policy was said at its
// date.
func TestNoRuleIsYoungerThanItsPolicy(t *testing.T) {
	dates := regexp.MustCompile(`\d{4}-\d\d(-\d\d)?`)
	for _, p := range Policies() {
		date := slices.MaxFunc(dates.FindAllString(strings.Join(p.Sources, " "), -1), strings.Compare)
		if p.Overload != nil && p.Overload.Bucket != nil {
			date = "2025-12-31" // the proposal of that month
		}
		for _, r := range p.InForce() {
			exempt := p.RetryWritesOff && (r.ID == "W31" || r.ID == "T6") // transactions came later
			if r.Revision > date != exempt {
				t.Errorf("%s of %s is said to be of %s", r.ID, p.Name, r.Revision)
			}
		}
		for id := range p.Wording {
			if !p.has(id) {
				t.Errorf("%s has words for %s, which it does not follow", p.Name, id)
			}
		}
	}
}

// TestOperations: docs/reference-engine.md has the table, and TestDocumentIsTrue
// compares it.
func TestOperations(t *testing.T) {
	if !slices.IsSortedFunc(Operations(), func(a, b Operation) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted")
	}
	for _, o := range append(Operations(), Operation{Name: "ping", Class: Command, Why: Lookup("runCommand").Why}) {
		if Lookup(o.Name) != o {
			t.Errorf("%s is found as %+v", o.Name, Lookup(o.Name))
		}
	}
	if !WriteStage("$out") || !WriteStage("$merge") || WriteStage("$match") {
		t.Error("$out and $merge are the stages that write")
	}
}

// failing is an attempt of an operation with the current policy.
func failing(op string, attempt int) State {
	p, _ := Named("")
	return State{Policy: p, Attempt: attempt, Chosen: Chosen{Address: "a", Wire: 21, RetryableWrites: true},
		Settings: Settings{Operation: Lookup(op), RetryReads: true, RetryWrites: true}}
}

func TestEveryListedCodeIsRetryable(t *testing.T) {
	listed := []int32{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
	for code := range int32(20000) {
		_, d := Next(failing("find", 1), Input{Kind: Failed, Failure: Failure{Kind: Server, Code: code}})
		if retried := d.Action == Select; retried != slices.Contains(listed, code) {
			t.Errorf("code %d: retried %v", code, retried)
		}
	}
}

func TestBackoffFormula(t *testing.T) {
	const ms, none = time.Millisecond, -1
	for _, c := range []struct {
		why         string
		attempt     int
		base        time.Duration
		jitter      float64
		retries     int // maxAdaptiveRetries
		want        time.Duration
		withoutWait bool // the error is raised
	}{
		{"first retry: 100 ms on average", 1, 0, 0.5, none, 100 * ms, false},
		{"second retry: 200 ms on average", 2, 0, 0.5, none, 200 * ms, false},
		{"no jitter, no delay", 1, 0, 0, none, 0, false},
		{"the server's base replaces ours", 1, 7 * ms, 0.5, none, 7 * ms, false},
		{"the whole ceiling", 1, 0, 1, none, 200 * ms, false},
		{"100 ms · 2^6 is still below MAX_BACKOFF", 6, 0, 1, 7, 6400 * ms, false},
		{"100 ms · 2^7 is above it", 7, 0, 1, 7, 10000 * ms, false},
		{"nothing overflows", 900, 0, 1, 1000, 10000 * ms, false},
		{"a negative base does not count", 1, -time.Second, 0.5, none, 100 * ms, false},
		{"never above MAX_BACKOFF", 2, time.Hour, 0.5, none, 5000 * ms, false},
		{"MAX_RETRIES is 2", 3, 0, 0.5, none, 0, true},
		{"maxAdaptiveRetries 0 allows none", 1, 0, 0.5, 0, 0, true},
	} {
		s := failing("find", c.attempt)
		if c.retries != none {
			s.Settings.MaxAdaptiveRetries = &c.retries
		}
		_, d := Next(s, Input{Kind: Failed, Jitter: c.jitter, Failure: Failure{Kind: Server, Code: 462, BaseBackoff: c.base,
			Labels: []string{labelOverloaded, labelRetryable}}})
		if c.withoutWait != (d.Action == ReturnError) || d.Delay != c.want {
			t.Errorf("%s: %v %v", c.why, d.Action, d.Delay)
		}
	}
}

// TestStatesAreValues: what a caller does with one decision changes neither the
// state that it came of nor another decision from the same state.
func TestStatesAreValues(t *testing.T) {
	s := failing("find", 1)
	s.Chosen.Sharded, s.Deprioritized = true, append(make([]string, 0, 4), "a")
	fail := func(server string) (State, Decision) {
		return Next(s, Input{Kind: Failed, Failure: Failure{Kind: Network, Server: server}})
	}
	next, d := fail("b")
	other, _ := fail("c")
	d.Deprioritized[0] = "changed by the caller"
	for _, c := range []struct {
		why       string
		got, want []string
	}{
		{"the state before", s.Deprioritized, []string{"a"}},
		{"the state after one failure, which shares no memory with the decision or the other state", next.Deprioritized, []string{"a", "b"}},
		{"the state after the other", other.Deprioritized, []string{"a", "c"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s avoids %v, want %v", c.why, c.got, c.want)
		}
	}
}

func TestAnInputOutOfTurnEndsTheOperation(t *testing.T) {
	if s, d := Next(failing("find", 0), Input{Kind: 99}); d.Action != ReturnError || !s.Done {
		t.Errorf("%+v", d)
	}
	if _, d := NextTransaction(TransactionState{}, TransactionInput{Kind: 99}); d.Action != ReturnError {
		t.Errorf("%+v", d)
	}
}
