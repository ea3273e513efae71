package reference

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func revision(t *testing.T, name string) *retry.Policy {
	t.Helper()
	p, err := retry.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// december are stories under client-backpressure@2025-12.
var december = []overloadRow{
	{"five retries, 100 ms before the first", "insert", 1, nil, overloads(9), []int64{100, 200, 400, 800, 1600}, 6, "462 overloaded retryable"},
	{"the same for what is no retryable write", "update", 1, nil, overloads(9), []int64{100, 200, 400, 800, 1600}, 6, "462 overloaded retryable"},
	{"maxAdaptiveRetries is unknown", "find", 1, uri("maxAdaptiveRetries", 1), overloads(3), []int64{100, 200, 400}, 4, ""},
	{"so is baseBackoffMS", "find", 1, nil, []step{based(int32(7))}, []int64{100}, 2, ""},
	{"retryReads does not count", "find", 1, uri("retryReads", false), overloads(1), []int64{100}, 2, ""},
	{"retryWrites does not count", "create", 1, uri("retryWrites", false), overloads(1), []int64{100}, 2, ""},
	{"timeoutMS: the limit holds", "find", 1, uri("timeoutMS", 60000), overloads(9), []int64{100, 200, 400, 800, 1600}, 6, "462 overloaded retryable"},
	{"another error after an overload", "find", 1, nil, append(overloads(1), fails(91)), []int64{100}, 3, ""},
}

func TestClientBackpressureOfDecember(t *testing.T) {
	for _, r := range december {
		t.Run(r.why, func(t *testing.T) {
			t.Parallel()
			for _, w := range r.play(t, revision(t, "client-backpressure@2025-12")) {
				t.Error(w)
			}
			if len(r.play(t, nil)) == 0 {
				t.Error("the current policy does the same: the row tells nothing apart")
			}
		})
	}
}

// TestOperationsShareATokenBucket has one client use its tokens up.
func TestOperationsShareATokenBucket(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why      string
		capacity retry.Tokens
		steps    []step
		sent     []int // by operation
	}{
		{"three tokens are three retries, and none for the next operation", 3 * retry.Token, overloads(9), []int{4, 1, 1}},
		{"a retry that succeeds gives its token back, others get none of it", 1 * retry.Token,
			slices.Concat(overloads(1), []step{{}}, overloads(9)), []int{2, 2, 1}},
		{"a token of ten successes", 1 * retry.Token, slices.Concat(overloads(2), make([]step, 10), overloads(9)),
			[]int{2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1}},
		{"nine are too few", 1 * retry.Token, slices.Concat(overloads(2), make([]step, 9), overloads(9)),
			[]int{2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		p := revision(t, "client-backpressure@2025-12")
		p.Overload.Bucket.Capacity = c.capacity
		s := script(t, "replicaset", 1)
		s.on("find", c.steps...)
		e, err := New(newVirtual().options(0))
		if err != nil {
			t.Fatal(err)
		}
		e.(*driver).policy = p
		b := openOn(t, s, e, nil)
		op := oneOf("find")
		var sent []int
		for range c.sent {
			before := len(s.commands("find"))
			b.do(op.object, op.name, op.args)
			sent = append(sent, len(s.commands("find"))-before)
		}
		if !slices.Equal(sent, c.sent) {
			t.Errorf("%s: commands %v, want %v", c.why, sent, c.sent)
		}
	}
}

// TestNoTokenIsSpentTwice has many operations fail at the same time.
func TestNoTokenIsSpentTwice(t *testing.T) {
	p := revision(t, "client-backpressure@2025-12")
	p.Overload.Bucket.Capacity = 100 * retry.Token
	bucket := newTokenBucket(p)
	var spent atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s := retry.State{Policy: p, Attempt: 1, Settings: retry.Settings{Operation: retry.Lookup("find"), RetryReads: true}}
				if _, d := bucket.next(s, retry.Input{Kind: retry.Failed, Failure: retry.Failure{Kind: retry.Server, Code: 462, Labels: both}}); d.Action == retry.BackOff {
					spent.Add(1)
				}
			}
		})
	}
	all.Wait()
	if spent.Load() != 100 || bucket.tokens != 0 {
		t.Errorf("%d retries of 100 tokens, %v are left", spent.Load(), bucket.tokens)
	}
}

// TestRetryableWritesOf2018 plays what the first revision retried, with what
// the same client does today.
func TestRetryableWritesOf2018(t *testing.T) {
	const first = "retryable-writes@2018-03-14"
	on := d("retryWrites", true)
	message := func(text string) step {
		s := fails(17)
		s.reply[1].Value = text
		return s
	}
	insert, find := oneOf("insert"), oneOf("find")
	modern := opRow{"client", "clientBulkWrite", "bulkWrite", retryableWrites()[11].args}
	for _, c := range []struct {
		why    string
		op     opRow
		uri    bson.D
		step   step
		sent   int
		today  int
		raised bool
	}{
		{"a network error", insert, on, closes, 2, 2, false},
		{"retryWrites is false if it is not set", insert, nil, closes, 1, 2, true},
		{"a code", insert, on, fails(10107), 2, 1, false},
		{"a code that came later", insert, on, fails(262, labelWrite), 1, 2, true},
		{"a write concern error", insert, on, concern(64), 2, 1, false},
		{"one with another code", insert, on, concern(100), 1, 1, true},
		{"a message", insert, on, message("not master and no slave either"), 2, 1, false},
		{"a message of a server that recovers", insert, on, message("the node is recovering"), 2, 1, false},
		{"another message", insert, on, message("not primary"), 1, 1, true},
		{"a label", insert, on, fails(4711, labelWrite), 1, 2, true},
		{"overload", insert, on, fails(462, both...), 1, 2, true},
		{"a read", find, on, closes, 1, 2, true},
		{"the bulkWrite command came in 2024", modern, on, closes, 1, 2, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			for policy, want := range map[string]int{first: c.sent, "": c.today} {
				s := script(t, "replicaset", 1)
				s.on(c.op.command, c.step)
				if c.op.command == "bulkWrite" {
					s.on(c.op.command, written)
				}
				b := open(t, s, Options{Policy: policy, Sleep: newVirtual().options(0).Sleep}, c.uri)
				out := b.do(c.op.object, c.op.name, c.op.args)
				if n := len(s.commands(c.op.command)); n != want {
					t.Errorf("policy %q: %d commands, want %d", policy, n, want)
				}
				if policy != first {
					continue
				}
				if (out.Err != nil) != c.raised {
					t.Errorf("raised %v", out.Err)
				}
				if out.Err != nil && c.step.close && out.Err.HasLabel(labelWrite) {
					t.Errorf("the driver added a label: %v", out.Err.Labels)
				}
			}
		})
	}
}

// TestOneRetryUnderTimeoutMSIn2018: more would send the transaction number too
// often.
func TestOneRetryUnderTimeoutMSIn2018(t *testing.T) {
	t.Parallel()
	s := script(t, "replicaset", 1)
	s.on("insert", slices.Repeat([]step{fails(91)}, 5)...)
	b := open(t, s, Options{Policy: "retryable-writes@2018-03-14"}, d("retryWrites", true, "timeoutMS", time.Minute.Milliseconds()))
	op := oneOf("insert")
	out := b.do(op.object, op.name, op.args)
	sent := s.commands("insert")
	if out.Err == nil || len(sent) != 2 || !sent[0].Lookup("txnNumber").Equal(sent[1].Lookup("txnNumber")) {
		t.Errorf("%d commands: %v", len(sent), out.Err)
	}
}
