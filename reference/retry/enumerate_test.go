package retry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// outcomes are the outcomes of an attempt of a read, a write, or both. Failures of writes already have the labels that
// drivers add.
var outcomes = []struct {
	of, name string
	f        Failure // Kind 0: the attempt succeeds
	why      string
}{
	{"rw", "ok", Failure{}, "the attempt succeeds"},
	{"rw", "selection", Failure{Kind: Selection}, "no server"},
	{"r", "network", Failure{Kind: Network}, "retryable"},
	{"r", "91", Failure{Kind: Server, Code: 91}, "a listed code"},
	{"r", "42", Failure{Kind: Server, Code: 42}, "a code that is not listed"},
	{"r", "pool", Failure{Kind: PoolCleared}, "retryable, not sent"},
	{"rw", "checkout", Failure{Kind: Checkout}, "the driver's own error"},
	{"rw", "unbuilt", Failure{Kind: NotBuilt}, "no equivalent command"},
	{"r", "handshake network", Failure{Kind: Network, Handshake: true}, "retryable in the handshake"},
	{"r", "handshake 91", Failure{Kind: Server, Code: 91, Handshake: true}, "a listed code in the handshake"},
	{"r", "handshake 18", Failure{Kind: Server, Code: 18, Handshake: true}, "wrong password"},
	{"r", "overload", Failure{Kind: Server, Code: 462, Labels: []string{codes.SystemOverloadedError, codes.RetryableError}},
		"retryable overload error"},
	{"rw", "overload only", Failure{Kind: Server, Code: 462, Labels: []string{codes.SystemOverloadedError}},
		"overload error that is not retryable"},
	{"rw", "overload, no writes", Failure{Kind: Server, Code: 462,
		Labels: []string{codes.SystemOverloadedError, codes.RetryableError, codes.NoWritesPerformed}},
		"an earlier error is raised"},
	{"r", "overloaded 91", Failure{Kind: Server, Code: 91, Labels: []string{codes.SystemOverloadedError}},
		"retryable as a read, and overload"},
	{"w", "network", Failure{Kind: Network, Labels: []string{codes.RetryableWriteError}}, "may have written"},
	{"w", "silent network", Failure{Kind: Network}, "no label: the client does not retry writes"},
	{"w", "91", Failure{Kind: Server, Code: 91, Labels: []string{codes.RetryableWriteError}}, "a label"},
	{"w", "bare 91", Failure{Kind: Server, Code: 91}, "a code does not make a write retryable"},
	{"w", "none 91", Failure{Kind: Server, Code: 91, Labels: []string{codes.RetryableWriteError, codes.NoWritesPerformed}},
		"retryable, nothing written"},
	{"w", "none 42", Failure{Kind: Server, Code: 42, Labels: []string{codes.NoWritesPerformed}}, "not retryable, nothing written"},
	{"w", "pool", Failure{Kind: PoolCleared, Labels: []string{codes.RetryableWriteError}}, "retryable, not sent"},
	{"w", "64", Failure{Kind: Server, Code: 64}, "retryable until 2018-06-07"},
	{"w", "message", Failure{Kind: Server, Code: 17, Message: "node is recovering"},
		"retryable by its message, before labels"},
	{"w", "handshake", Failure{Kind: Network, Handshake: true, Labels: []string{codes.RetryableWriteError}},
		"retryable, nothing written"},
	{"w", "overloaded 91", Failure{Kind: Server, Code: 91, Labels: []string{codes.SystemOverloadedError, codes.RetryableWriteError}},
		"retryable as a write, and overload"},
}

// config is one way to run an operation.
type config struct {
	policy                            *Policy
	op                                string
	retryReads, retryWrites, txn      bool
	timeout, sharded, retarget, oldie bool
	left                              time.Duration // until the deadline, at each attempt
	late                              bool          // the deadline passes before the second attempt
	scarce                            bool          // the bucket starts with one token
	// Retryable writes are supported by no server (alone), every other server (mixed), or the servers of the first two
	// attempts (fading).
	alone, mixed, fading bool
}

func (c config) String() string {
	type plain config
	name := c.policy.Name
	c.policy = nil
	return fmt.Sprintf("%s %+v", name, plain(c))
}

func (c config) leftAt(attempt int) time.Duration {
	if c.late && attempt > 1 {
		return 0
	}
	return c.left
}

// tokens returns the initial number of tokens, in tenths.
func (c config) tokens() Tokens {
	switch {
	case c.policy.Name != "client-backpressure@2025-12":
		return 0
	case c.scarce:
		return 10
	}
	return 10_000
}

// supports reports whether the server of an attempt supports retryable writes.
func (c config) supports(attempt int) bool {
	return !c.alone && (!c.mixed || attempt%2 == 1) && (!c.fading || attempt < 3)
}

// server returns the server of an attempt. Servers without retryable writes have a wire version that is too low, under
// policies that check it in sharded clusters, or have no sessions.
func (c config) server(attempt int) Chosen {
	old := !c.supports(attempt) && c.policy.minWireVersion > 0 && c.sharded
	return Chosen{Address: fmt.Sprintf("s%d", attempt%2), // the third attempt uses the first server again
		Sharded: c.sharded, Wire: testkit.Either[int32](c.oldie || old, 5, 21), RetryableWrites: c.supports(attempt) || old}
}

// ends reports whether the operation ends a transaction. Such operations are retried regardless of the options.
func (c config) ends() bool { return c.op == "commitTransaction" }

// wanted is the expected decision after a history of failures, computed without rules or state.
type wanted struct {
	retry         bool
	backoff       bool
	expired       bool
	raise         int // index into the history
	most          int // maximum number of attempts
	deprioritized []string
	tokens        Tokens // remaining
}

func overloaded(h []Failure) bool {
	return slices.ContainsFunc(h, func(f Failure) bool { return f.has(codes.SystemOverloadedError) })
}

func want(c config, h []Failure) wanted {
	last, n := h[len(h)-1], len(h)
	name := c.policy.Name
	final, december, first := name == "current", name == "client-backpressure@2025-12", name == "retryable-writes@2018-03-14"
	pressure := final || december
	var eligible bool
	gate := c.retryReads && c.retryWrites
	old := c.oldie && (december || c.policy.Name == "retryable-reads@2024")
	switch c.op {
	case "find":
		eligible = c.retryReads && !c.txn && !old && (last.Kind == Network || last.Kind == PoolCleared ||
			last.Kind == Server && slices.Contains(listedCodes, last.Code))
		gate = c.retryReads
	case "getMore":
		gate = c.retryReads
	case "insert":
		eligible = last.has(codes.RetryableWriteError) && c.retryWrites && !c.txn && c.supports(n)
		gate = c.retryWrites
	case "commitTransaction":
		eligible = last.has(codes.RetryableWriteError) && c.supports(n)
		gate = true
	case "multi-document update", "unacknowledged write", "aggregate with a write stage":
		gate = c.retryWrites
	}
	if first { // before labels and retryable reads
		text := last.Kind == Server && strings.Contains(last.Message, "node is recovering")
		old := []int32{6, 7, 64, 89, 91, 189, 9001, 10107, 11600, 11602, 13435, 13436}
		eligible = c.op == "insert" && c.retryWrites && !c.txn && c.supports(n) && !last.Handshake &&
			(last.Kind == Network || last.Kind == Server && slices.Contains(old, last.Code) || text)
	}
	if c.policy.Pinning != "" {
		eligible = false
	}
	if pressure && (gate || december) && last.has(codes.SystemOverloadedError) && last.has(codes.RetryableError) {
		eligible = true
	}
	var w wanted
	w.most = 2
	if c.timeout && !first {
		w.most = 1 << 30
	}
	step := 50 * time.Millisecond << n // 0.5 · 100 ms · 2^n, or 2^(n-1) in 2025-12
	if pressure && overloaded(h) {
		w.most = 3
		if december {
			w.most, step = 6, step/2
		}
	}
	w.backoff = pressure && last.has(codes.SystemOverloadedError)
	left := c.leftAt(n)
	enough := !c.timeout || first || left > 0 && (!w.backoff || left >= step)
	w.retry = eligible && n < w.most && enough
	w.tokens = c.tokens()
	for i, f := range h {
		if december && i > 0 && !f.has(codes.SystemOverloadedError) {
			w.tokens = min(10_000, w.tokens+10)
		}
		if last := i == n-1; december && f.has(codes.SystemOverloadedError) && (!last || w.retry) {
			if last && w.tokens < 10 {
				w.retry = false
				break
			}
			w.tokens -= 10
		}
	}
	over := c.timeout && !first && left <= 0
	attempt := last.Kind == Network || last.Kind == Server
	w.expired = over && (eligible && n < w.most || n > 1 && !attempt)
	for i, f := range h {
		attempted := f.Kind == Network || f.Kind == Server
		if c.op != "find" && c.op != "getMore" {
			attempted = attempted && !f.Handshake && (!f.has(codes.NoWritesPerformed) || first)
		}
		if attempted {
			w.raise = i
		}
	}
	for _, f := range h {
		away := c.sharded
		if !c.sharded && f.has(codes.SystemOverloadedError) {
			away = final && c.retarget || c.policy.Name == "retryable-reads@2026"
		}
		if !away && !december || first {
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

// shed reports whether every retryable write error is a retryable overload error, so that nothing was executed.
func shed(h []Failure) bool {
	return !slices.ContainsFunc(h,
		func(f Failure) bool {
			return f.has(codes.RetryableWriteError) && !(f.has(codes.SystemOverloadedError) && f.has(codes.RetryableError))
		})
}

// proves reports whether a failure proves that nothing was executed.
func proves(f Failure) bool {
	return f.Kind != Network && f.Kind != Server || f.Handshake || f.has(codes.NoWritesPerformed) ||
		f.has(codes.SystemOverloadedError) && f.has(codes.RetryableError)
}

func configs() []config {
	var out []config
	for _, p := range Policies() {
		if p.Name == "read-preferences@2012-08" {
			continue // the same as 2014 for this package
		}
		for _, op := range []string{"find", "getMore", "runCommand", "aggregate with a write stage",
			"insert", "commitTransaction", "multi-document update", "unacknowledged write"} {
			writes := Lookup(op).Class == operations.Write
			for i := range 1 << 7 {
				bit := func(n int) bool { return i>>n&1 == 1 }
				c := config{policy: p, op: op, retryReads: bit(0), retryWrites: bit(1), txn: bit(2), sharded: bit(3)}
				if p.Bucket() != nil {
					c.scarce = bit(4)
				} else {
					c.retarget = bit(4)
				}
				switch {
				case !writes && bit(6):
					continue
				case writes && !c.retryReads, c.scarce && (c.sharded || c.txn), c.retarget && (c.sharded || p.Name != "current"),
					!writes && bit(5) && p.minWireVersion == 0:
					continue // no rule depends on it
				case writes:
					c.alone, c.mixed, c.fading = bit(5) && !bit(6), bit(6) && !bit(5), bit(5) && bit(6)
				default:
					c.oldie = bit(5)
				}
				out = append(out, c)
				c.timeout = true
				once := c.txn || c.alone || c.mixed || c.fading // the deadline is irrelevant
				for _, left := range []time.Duration{0, 120 * time.Millisecond, time.Minute} {
					if c.left = left; !once || left == time.Minute {
						out = append(out, c)
					}
				}
				if !once {
					c.late = true
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// TestEverySequence tests every sequence of outcomes of up to four attempts.
func TestEverySequence(t *testing.T) {
	total := 0
	for _, c := range configs() {
		st, d := Next(Start(c.policy, Settings{
			Operation: Lookup(c.op), RetryReads: c.retryReads, RetryWrites: c.retryWrites,
			InTransaction: c.txn, Timeout: c.timeout, OverloadRetargeting: c.retarget,
		}), Input{Kind: Begin, Tokens: c.tokens()})
		if d.Action != Select || len(d.Deprioritized) != 0 || d.Attempt != 1 || d.Tokens != c.tokens() {
			t.Fatalf("%v: begin: %+v", c, d)
		}
		total += walk(t, c, st, d.Tokens, nil, nil)
		if t.Failed() {
			return
		}
	}
	if total < 100_000 {
		t.Errorf("only %d sequences were tested", total)
	}
}

// walk tests each outcome of the next attempt, and recursively of the following ones. It returns the number of
// sequences.
func walk(t *testing.T, c config, st State, tokens Tokens, h []Failure, path []string) (total int) {
	attempt := len(h) + 1
	before := slices.Clone(st.deprioritized)
	chosen := c.server(attempt)
	sent, ds := Next(st, Input{Kind: Selected, Tokens: tokens, Chosen: chosen})
	of := testkit.Either(Lookup(c.op).Class == operations.Write, "w", "r")
	for _, o := range outcomes {
		if !strings.Contains(o.of, of) {
			continue
		}
		path := append(slices.Clip(path), o.name)
		check := func(holds bool, what string, got ...any) bool {
			if !holds {
				t.Errorf("%v %v: %s: %+v", c, path, what, got)
			}
			return holds
		}
		total++
		s, f := st, o.f
		f.Attempt = attempt
		if o.f.Kind != Selection {
			if numbered := c.op == "insert" || c.ends(); numbered && attempt > 1 && !c.supports(attempt) &&
				!(c.policy.Overload != nil && overloaded(h) && shed(h)) {
				w := want(c, h)
				check(ds.Action == ReturnError && ds.Raise.Attempt == h[w.raise].Attempt && ds.Tokens == w.tokens,
					"the new server does not support retryable writes", ds, w)
				continue
			}
			if s = sent; !check(ds.Action == Send && ds.Attempt == attempt && ds.Tokens == tokens, "selected", ds) {
				continue
			}
			f.Server = chosen.Address
			check(c.op != "insert" || c.supports(attempt) || !slices.ContainsFunc(h, func(f Failure) bool { return !proves(f) }),
				"a write that may have been executed is sent to a server without retryable writes")
		}
		if o.f.Kind == 0 {
			_, d := Next(s, Input{Kind: Succeeded, Tokens: tokens})
			left := tokens
			if c.policy.Bucket() != nil {
				left = min(10_000, tokens+testkit.Either[Tokens](attempt == 1, 1, 11))
			}
			check(d.Action == ReturnResult && d.Rules != RuleSet{} && d.Tokens == left, "success", d)
			continue
		}
		next, d := Next(s, Input{Kind: Failed, Failure: o.f, Left: c.leftAt(attempt), Jitter: 0.5, Tokens: tokens})
		hh := append(slices.Clone(h), f)
		w := want(c, hh)
		check(d.Rules != RuleSet{} && d.Reason != "", "a decision has rules and a reason", d)
		check(d.Tokens == w.tokens && d.Tokens >= 0, "tokens", d.Tokens, w.tokens)
		raises := func(expired bool) {
			want := hh[w.raise]
			check(d.Action == ReturnError && d.Raise.Attempt == want.Attempt && d.Raise.Server == want.Server &&
				d.Raise.Kind == want.Kind,
				"another error is raised", d, want)
			check(d.Expired == expired, "expired", d, expired)
			_, again := Next(next, Input{Kind: Begin})
			check(again.Action == ReturnError, "an ended operation continues", again)
		}
		if !w.retry {
			raises(w.expired)
			continue
		}
		if w.backoff {
			delay := 50 * time.Millisecond << attempt
			if c.policy.Bucket() != nil {
				delay /= 2
			}
			if !check(d.Action == BackOff && d.Delay == delay && (!c.timeout || d.Delay <= c.leftAt(attempt)), "the backoff",
				d, delay) {
				continue
			}
			left := c.leftAt(attempt + 1)
			next, d = Next(next, Input{Kind: BackedOff, Left: left, Tokens: w.tokens})
			if c.timeout && left <= 0 {
				raises(true)
				continue
			}
		}
		if !check(d.Action == Select && slices.Equal(d.Deprioritized, w.deprioritized) && d.Attempt == attempt+1 &&
			d.Tokens == w.tokens,
			"the next selection", d, w) {
			continue
		}
		// Independently of want, no write is executed twice.
		numbered := c.ends() || c.op == "insert" && c.retryWrites && !c.txn && c.supports(attempt)
		check(of == "r" || numbered || proves(f),
			"a write that may have been executed is sent again without a transaction number")
		check(d.Attempt <= w.most, "too many attempts", d, w)
		if attempt < 4 {
			total += walk(t, c, next, w.tokens, hh, path)
		}
	}
	if !slices.Equal(st.deprioritized, before) {
		t.Errorf("%v %v: the state was modified", c, path)
	}
	return total
}
