package retry

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// The outcomes that attempts may have, each with the reason for its row.
var outcomes = []struct {
	name string
	f    Failure // Kind 0: the attempt succeeds
	why  string
}{
	{"ok", Failure{}, "the attempt succeeds"},
	{"selection", Failure{Kind: Selection}, "no server"},
	{"network", Failure{Kind: Network}, "retryable"},
	{"91", Failure{Kind: Server, Code: 91}, "a listed code"},
	{"42", Failure{Kind: Server, Code: 42}, "a code that is not listed"},
	{"pool", Failure{Kind: PoolCleared}, "retryable, nothing attempted"},
	{"checkout", Failure{Kind: Checkout}, "the driver's own error"},
	{"unbuilt", Failure{Kind: NotBuilt}, "no equivalent command"},
	{"handshake network", Failure{Kind: Network, Handshake: true}, "retryable in the handshake"},
	{"handshake 18", Failure{Kind: Server, Code: 18, Handshake: true}, "wrong password"},
	{"overload", Failure{Kind: Server, Code: 462, Labels: []string{labelOverloaded, labelRetryable}}, "retryable overload error"},
	{"overload only", Failure{Kind: Server, Code: 462, Labels: []string{labelOverloaded}}, "overload error that is not retryable"},
	{"overload, no writes", Failure{Kind: Server, Code: 462, Labels: []string{labelOverloaded, labelRetryable, labelNoWrites}}, "an earlier error tells of more"},
	{"overloaded 91", Failure{Kind: Server, Code: 91, Labels: []string{labelOverloaded}}, "retryable as a read, and overload"},
}

// config is one way to run an operation.
type config struct {
	policy                            *Policy
	op                                string
	retryReads, retryWrites, txn      bool
	timeout, sharded, retarget, oldie bool
	left                              time.Duration
}

func (c config) String() string {
	return fmt.Sprintf("%s %s reads=%v writes=%v txn=%v timeout=%v(%v) sharded=%v retarget=%v old=%v",
		c.policy.Name, c.op, c.retryReads, c.retryWrites, c.txn, c.timeout, c.left, c.sharded, c.retarget, c.oldie)
}

// wanted states the properties of the specifications over a whole history of
// failures, without the rules: it knows no state but the list.
type wanted struct {
	retry         bool
	backoff       bool
	raise         int // index into the history
	deprioritized []string
}

func want(c config, h []Failure) wanted {
	last, n := h[len(h)-1], len(h)
	pressure := c.policy.Name == "current"
	op := Lookup(c.op)
	listed := []int32{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
	retryable := last.Kind == Network || last.Kind == PoolCleared ||
		last.Kind == Server && slices.Contains(listed, last.Code)
	old := c.oldie && c.policy.Name == "retryable-reads@2024"
	asRead := retryable && op.RetryableRead && c.retryReads && !c.txn && !old
	gate := map[Class]bool{Read: c.retryReads, Write: c.retryWrites, Command: c.retryReads && c.retryWrites}[op.Class]
	asOverload := pressure && last.Has(labelOverloaded) && last.Has(labelRetryable) && gate
	limit := 1
	if c.timeout {
		limit = 1 << 30
	}
	seen := slices.ContainsFunc(h, func(f Failure) bool { return f.Has(labelOverloaded) })
	if pressure && seen {
		limit = 2
	}
	var w wanted
	w.backoff = pressure && last.Has(labelOverloaded)
	// half of 100 ms · 2^n, for the jitter of one half
	enough := !c.timeout || c.left > 0 && (!w.backoff || c.left >= 50*time.Millisecond<<n)
	w.retry = (asRead || asOverload) && n <= limit && enough
	for i, f := range h {
		silent := op.Class != Read && (f.Handshake || f.Has(labelNoWrites)) // no write was attempted
		if (f.Kind == Network || f.Kind == Server) && !silent {
			w.raise = i
		}
	}
	for _, f := range h {
		away := c.sharded
		if !c.sharded && f.Has(labelOverloaded) {
			away = pressure && c.retarget || c.policy.Name == "retryable-reads@2026"
		}
		if !away {
			continue
		}
		if c.policy.Name == "retryable-reads@2024" {
			w.deprioritized = []string{f.Server}
		} else if !slices.Contains(w.deprioritized, f.Server) {
			w.deprioritized = append(w.deprioritized, f.Server)
		}
	}
	return w
}

func configs() []config {
	var out []config
	b := []bool{false, true}
	for _, p := range Policies() {
		for _, op := range []string{"find", "getMore", "runCommand", "aggregate with a write stage"} {
			for i := 0; i < 1<<6; i++ {
				bit := func(n int) bool { return b[i>>n&1] }
				c := config{policy: p, op: op, retryReads: bit(0), retryWrites: bit(1), txn: bit(2),
					sharded: bit(3), retarget: bit(4), oldie: bit(5)}
				out = append(out, c)
				c.timeout = true
				for _, left := range []time.Duration{0, 120 * time.Millisecond, time.Minute} {
					c.left = left
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// TestEverySequence goes over every sequence of outcomes up to four attempts.
func TestEverySequence(t *testing.T) {
	total := 0
	for _, c := range configs() {
		if testing.Short() && (c.retarget || c.retryWrites) {
			continue
		}
		st, d := Next(Start(c.policy, Settings{
			Operation: Lookup(c.op), RetryReads: c.retryReads, RetryWrites: c.retryWrites,
			InTransaction: c.txn, Timeout: c.timeout, OverloadRetargeting: c.retarget,
		}), Input{Kind: Begin})
		if d.Action != Select || len(d.Deprioritized) != 0 || d.Attempt != 1 {
			t.Fatalf("%v: begin: %+v", c, d)
		}
		total += walk(t, c, st, nil, nil)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d sequences", total)
	if total < 100_000 {
		t.Errorf("only %d sequences were seen", total)
	}
}

// walk plays each outcome of the attempt that st is to begin.
func walk(t *testing.T, c config, st State, h []Failure, path []string) (total int) {
	attempt := len(h) + 1
	for _, o := range outcomes {
		path := append(slices.Clip(path), o.name)
		fail := func(format string, args ...any) {
			t.Errorf("%v %v: %s", c, path, fmt.Sprintf(format, args...))
		}
		total++
		server := fmt.Sprintf("s%d", attempt%2) // the third attempt comes back to the first server
		s, f, before := st, o.f, fmt.Sprintf("%+v", st)
		f.Attempt = attempt
		var d Decision
		if o.f.Kind != Selection {
			wire := int32(21)
			if c.oldie {
				wire = 5
			}
			s, d = Next(st, Input{Kind: Selected, Chosen: Chosen{Address: server, Sharded: c.sharded, Wire: wire}})
			if d.Action != Send || d.Attempt != attempt {
				fail("selected: %+v", d)
				continue
			}
			f.Server = server
		}
		if o.f.Kind == 0 {
			_, d = Next(s, Input{Kind: Succeeded})
			if d.Action != ReturnResult || len(d.Rules) == 0 {
				fail("success: %+v", d)
			}
			continue
		}
		next, d := Next(s, Input{Kind: Failed, Failure: o.f, Left: c.left, Jitter: 0.5})
		hh := append(slices.Clip(h), f)
		w := want(c, hh)
		if fmt.Sprintf("%+v", st) != before {
			fail("the state was modified")
		}
		if len(d.Rules) == 0 || d.Reason == "" {
			fail("a decision without rules or reason: %+v", d)
		}
		if !w.retry {
			if d.Action != ReturnError || d.Raise.Attempt != hh[w.raise].Attempt || d.Raise.Server != hh[w.raise].Server || d.Raise.Kind != hh[w.raise].Kind {
				fail("got %v raising %+v, want error of attempt %d", d.Action, d.Raise, w.raise+1)
			}
			if _, again := Next(next, Input{Kind: Begin}); again.Action != ReturnError {
				fail("an ended operation goes on: %+v", again)
			}
			continue
		}
		if w.backoff {
			if d.Action != BackOff || d.Delay != 50*time.Millisecond<<attempt {
				fail("got %v %v, want a backoff", d.Action, d.Delay)
				continue
			}
			next, d = Next(next, Input{Kind: BackedOff, Left: c.left})
		}
		if d.Action != Select || !slices.Equal(d.Deprioritized, w.deprioritized) || d.Attempt != attempt+1 {
			fail("got %v without %v, want a selection without %v", d.Action, d.Deprioritized, w.deprioritized)
			continue
		}
		if attempt < 4 {
			total += walk(t, c, next, hh, path)
		}
	}
	return total
}
