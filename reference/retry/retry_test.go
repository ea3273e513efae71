package retry

import (
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

func TestRulesAreNumberedOnce(t *testing.T) {
	seen := map[string]bool{}
	used := map[string]bool{}
	for _, p := range Policies() {
		for _, id := range p.Rules {
			used[id] = true
		}
	}
	for _, r := range Rules() {
		if r.ID == "" || seen[r.ID] {
			t.Errorf("rule %q stands twice", r.ID)
		}
		seen[r.ID] = true
		if r.Statement == "" || r.Section == "" || r.Revision == "" {
			t.Errorf("rule %s lacks its statement, section or revision", r.ID)
		}
		if !used[r.ID] {
			t.Errorf("rule %s belongs to no policy", r.ID)
		}
	}
}

func TestPoliciesAreFoundByName(t *testing.T) {
	for _, name := range []string{"", "current", "retryable-reads@2026", "retryable-reads@2024",
		"client-backpressure@2025-12", "retryable-writes@2018-03-14"} {
		if _, err := Named(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := Named("retryable-reads@1999"); err == nil || !strings.Contains(err.Error(), "retryable-reads@2024") {
		t.Errorf("an unknown policy: %v", err)
	}
}

func TestOperations(t *testing.T) {
	if !sort.SliceIsSorted(operationTable, func(i, j int) bool { return operationTable[i].Name < operationTable[j].Name }) {
		t.Error("the table is not sorted")
	}
	for _, c := range []struct {
		name string
		want bool
		why  string
	}{
		{"aggregate", true, "no write stage"},
		{"aggregate with a write stage", false, "$out, $merge"},
		{"count", true, "provided"},
		{"distinct", true, "read"},
		{"find", true, "read, and what backs GridFS"},
		{"getMore", false, "the cursor may have advanced"},
		{"listCollections", true, "enumeration"},
		{"listDatabases", true, "enumeration"},
		{"listIndexes", true, "enumeration"},
		{"mapReduce", false, "never"},
		{"runCommand", false, "generic"},
		{"ping", false, "not in the table"},
		{"insert", false, "a write"},
	} {
		if got := Lookup(c.name).RetryableRead; got != c.want {
			t.Errorf("%s: retryable read %v, want %v: %s", c.name, got, c.want, c.why)
		}
	}
}

func TestEveryListedCodeIsRetryable(t *testing.T) {
	p, _ := Named("")
	retries := func(code int32) bool {
		s := State{Policy: p, Settings: Settings{Operation: Lookup("find"), RetryReads: true}, Attempt: 1, Chosen: Chosen{Address: "a", Wire: 21}}
		_, d := Next(s, Input{Kind: Failed, Failure: Failure{Kind: Server, Code: code}})
		return d.Action == Select
	}
	listed := []int32{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
	for code := int32(0); code < 20000; code++ {
		if retries(code) != slices.Contains(listed, code) {
			t.Errorf("code %d: retried %v", code, retries(code))
		}
	}
}

func TestBackoffFormula(t *testing.T) {
	p, _ := Named("")
	for _, c := range []struct {
		attempt      int
		base         time.Duration
		jitter       float64
		max          *int
		want         time.Duration
		wantNoneLeft bool
		why          string
	}{
		{1, 0, 0.5, nil, 100 * time.Millisecond, false, "first retry: 100 ms on average"},
		{2, 0, 0.5, nil, 200 * time.Millisecond, false, "second retry: 200 ms on average"},
		{1, 0, 0, nil, 0, false, "no jitter, no delay"},
		{1, 7 * time.Millisecond, 0.5, nil, 7 * time.Millisecond, false, "the server's base replaces ours"},
		{1, 0, 1, nil, 200 * time.Millisecond, false, "the whole ceiling"},
		{5, 0, 1, retries(7), 3200 * time.Millisecond, false, "100 ms · 2^5"},
		{6, 0, 1, retries(7), 6400 * time.Millisecond, false, "100 ms · 2^6 is still below MAX_BACKOFF"},
		{7, 0, 1, retries(7), 10 * time.Second, false, "100 ms · 2^7 is above it"},
		{900, 0, 1, retries(1000), 10 * time.Second, false, "nothing overflows"},
		{1, -time.Second, 0.5, nil, 100 * time.Millisecond, false, "a negative base does not count"},
		{2, time.Hour, 0.5, nil, 5 * time.Second, false, "never above MAX_BACKOFF"},
		{3, 0, 0.5, nil, 0, true, "MAX_RETRIES is 2"},
		{1, 0, 0.5, new(int), 0, true, "maxAdaptiveRetries 0 allows none"},
	} {
		s := State{Policy: p, Attempt: c.attempt, Chosen: Chosen{Address: "a"},
			Settings: Settings{Operation: Lookup("find"), RetryReads: true, MaxAdaptiveRetries: c.max}}
		_, d := Next(s, Input{Kind: Failed, Jitter: c.jitter, Failure: Failure{Kind: Server, Code: 462, BaseBackoff: c.base,
			Labels: []string{labelOverloaded, labelRetryable}}})
		if c.wantNoneLeft != (d.Action == ReturnError) || d.Delay != c.want {
			t.Errorf("%s: %v %v", c.why, d.Action, d.Delay)
		}
	}
}

func retries(n int) *int { return &n }

func TestWrites(t *testing.T) {
	p, _ := Named("")
	write := func(labels ...string) Failure {
		return Failure{Kind: Server, Code: 91, Labels: append(labels, labelWrite)}
	}
	for _, c := range []struct {
		op       string
		retry    bool
		txn      bool
		noRetryW bool
		alone    bool // standalone
		f        Failure
		why      string
	}{
		{"insert", true, false, false, false, write(), "label on a retryable write"},
		{"insert", false, false, false, false, Failure{Kind: Server, Code: 91}, "no label: codes do not count for writes"},
		{"update of many", false, false, false, false, write(), "not a retryable write"},
		{"insert", false, true, false, false, write(), "in a transaction"},
		{"commitTransaction", true, true, false, false, write(), "commit is retried in a transaction"},
		{"commitTransaction", true, true, true, false, write(), "whatever retryWrites says"},
		{"insert", false, false, true, false, write(), "retryWrites false"},
		{"insert", false, false, false, true, write(), "a standalone does not support retryable writes"},
	} {
		s := State{Policy: p, Attempt: 1, Chosen: Chosen{Address: "a", RetryableWrites: !c.alone},
			Settings: Settings{Operation: Lookup(c.op), RetryReads: true, RetryWrites: !c.noRetryW, InTransaction: c.txn}}
		if _, d := Next(s, Input{Kind: Failed, Failure: c.f}); (d.Action == Select) != c.retry {
			t.Errorf("%s: %s: %v", c.op, c.why, d.Action)
		}
	}
	// NoWritesPerformed never hides an error that tells of a write.
	s := State{Policy: p, Attempt: 2, Chosen: Chosen{Address: "a", RetryableWrites: true}, Raise: Failure{Kind: Network, Attempt: 1},
		Settings: Settings{Operation: Lookup("insert"), RetryWrites: true}}
	if _, d := Next(s, Input{Kind: Failed, Failure: write(labelNoWrites)}); d.Raise.Attempt != 1 {
		t.Errorf("NoWritesPerformed: attempt %d was raised", d.Raise.Attempt)
	}
	if _, d := Next(s, Input{Kind: Failed, Failure: write()}); d.Raise.Attempt != 2 {
		t.Errorf("the newest write error: attempt %d was raised", d.Raise.Attempt)
	}
}

// TestOverloadOfWritesRaisesWhatWasAttempted plays what Retryable Writes says of
// errors to operations that only overload retries.
func TestOverloadOfWritesRaisesWhatWasAttempted(t *testing.T) {
	p, _ := Named("")
	for _, c := range []struct {
		op, why string
		second  Failure
		raised  int
	}{
		{"update of many", "an attempt was made", Failure{Kind: Server, Code: 2}, 2},
		{"update of many", "the second attempt wrote nothing", Failure{Kind: Server, Code: 2, Labels: []string{labelNoWrites}}, 1},
		{"runCommand", "runCommand counts as a write", Failure{Kind: Server, Code: 2, Labels: []string{labelNoWrites}}, 1},
		{"getMore", "a read", Failure{Kind: Server, Code: 2, Labels: []string{labelNoWrites}}, 2},
		{"create", "a broken handshake proves that nothing was written", Failure{Kind: Network, Handshake: true}, 1},
	} {
		s := State{Policy: p, Attempt: 2, Chosen: Chosen{Address: "a"}, Overloaded: true,
			Raise: Failure{Kind: Server, Code: 462, Attempt: 1}, Settings: Settings{Operation: Lookup(c.op), RetryReads: true, RetryWrites: true}}
		if _, d := Next(s, Input{Kind: Failed, Failure: c.second}); d.Action != ReturnError || d.Raise.Attempt != c.raised {
			t.Errorf("%s, %s: %v of attempt %d, want %d", c.op, c.why, d.Action, d.Raise.Attempt, c.raised)
		}
	}
}

func TestAnInputOutOfTurnEndsTheOperation(t *testing.T) {
	p, _ := Named("")
	s, d := Next(Start(p, Settings{}), Input{Kind: 99})
	if d.Action != ReturnError || !s.Done {
		t.Errorf("%+v", d)
	}
}
