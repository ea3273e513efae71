package reference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// virtual is a clock that goes on only while something sleeps.
type virtual struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newVirtual() *virtual { return &virtual{now: time.Unix(1e9, 0)} }

func (v *virtual) options(jitter float64) Options {
	return Options{
		Now: func() time.Time {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.now
		},
		Sleep: func(_ context.Context, d time.Duration) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.now, v.slept = v.now.Add(d), append(v.slept, d)
			return nil
		},
		Random: func() float64 { return jitter },
	}
}

// delays gives what was slept, in milliseconds.
func (v *virtual) delays() []int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []int64
	for _, d := range v.slept {
		out = append(out, d.Milliseconds())
	}
	return out
}

// both are the labels of a retryable overload error.
var both = []string{labelOverloaded, labelRetryable}

func overloads(n int) []step { return slices.Repeat([]step{fails(462, both...)}, n) }

// based is an overload error with a server's baseBackoffMS.
func based(ms any) step {
	s := fails(462, both...)
	s.reply = append(s.reply, bson.E{Key: "baseBackoffMS", Value: ms})
	return s
}

type opRow struct {
	object, name, command string
	args                  bson.D
}

// oneOf are operations of each kind that the overload rules tell apart.
func oneOf(command string) opRow {
	empty := bson.D{}
	for _, o := range []opRow{
		{"collection", "find", "find", bson.D{{Key: "filter", Value: empty}}},
		{"collection", "insertOne", "insert", bson.D{{Key: "document", Value: bson.D{{Key: "a", Value: 1}}}}},
		{"collection", "updateMany", "update", bson.D{{Key: "filter", Value: empty}, {Key: "update", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}}},
		{"database", "createCollection", "create", bson.D{{Key: "collection", Value: "c"}}},
		{"database", "runCommand", "ping", bson.D{{Key: "commandName", Value: "ping"}, {Key: "command", Value: bson.D{{Key: "ping", Value: 1}}}}},
	} {
		if o.command == command {
			return o
		}
	}
	panic("no operation sends " + command)
}

// overloadRow is a story of an overloaded server.
type overloadRow struct {
	why     string
	command string
	jitter  float64
	uri     bson.D
	steps   []step
	slept   []int64 // milliseconds
	sent    int
	// What is raised: "" nothing, otherwise words of the error, among them
	// "timeout" for one of timeoutMS.
	raised string
}

func uri(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }

var overloadRows = []overloadRow{
	{"prose test 1: jitter 0 retries without delay", "insert", 0, nil, overloads(9), []int64{}, 3, "462 overloaded retryable"},
	{"prose test 1: jitter 1 waits 200 and 400 ms", "insert", 1, nil, overloads(9), []int64{200, 400}, 3, "462 overloaded retryable"},
	{"prose test 3: MAX_RETRIES is 2", "find", 1, nil, overloads(9), []int64{200, 400}, 3, "462 overloaded retryable"},
	{"prose test 4: maxAdaptiveRetries 1", "find", 1, uri("maxAdaptiveRetries", 1), overloads(9), []int64{200}, 2, "462 overloaded retryable"},
	{"maxAdaptiveRetries 0", "find", 1, uri("maxAdaptiveRetries", 0), overloads(9), nil, 1, "462 overloaded retryable"},
	{"maxAdaptiveRetries 2", "find", 1, uri("maxAdaptiveRetries", 2), overloads(9), []int64{200, 400}, 3, "462 overloaded retryable"},
	{"maxAdaptiveRetries 5", "find", 1, uri("maxAdaptiveRetries", 5), overloads(9), []int64{200, 400, 800, 1600, 3200}, 6, "462 overloaded retryable"},
	{"no delay is above MAX_BACKOFF", "find", 1, uri("maxAdaptiveRetries", 8), overloads(9),
		[]int64{200, 400, 800, 1600, 3200, 6400, 10000, 10000}, 9, "462 overloaded retryable"},
	{"prose test 5: the server's base of 50 ms", "insert", 1, nil, slices.Repeat([]step{based(int32(50))}, 9), []int64{100, 200}, 3, "462 overloaded retryable"},
	{"a base of the server as a long", "insert", 1, nil, slices.Repeat([]step{based(int64(50))}, 9), []int64{100, 200}, 3, "462 overloaded retryable"},
	{"a base that not every error has", "insert", 1, nil, []step{based(int32(7)), overloads(1)[0], {}}, []int64{14, 400}, 3, ""},
	{"a base above MAX_BACKOFF is capped", "insert", 0.5, nil, []step{based(int32(20000)), {}}, []int64{5000}, 2, ""},
	{"a base of 0 does not count", "insert", 1, nil, []step{based(int32(0)), {}}, []int64{200}, 2, ""},
	{"a negative base does not count", "insert", 1, nil, []step{based(int32(-5)), {}}, []int64{200}, 2, ""},
	{"the second attempt succeeds", "find", 1, nil, overloads(1), []int64{200}, 2, ""},
	{"updateMany", "update", 1, nil, overloads(2), []int64{200, 400}, 3, ""},
	{"create", "create", 1, nil, overloads(2), []int64{200, 400}, 3, ""},
	{"runCommand", "ping", 1, nil, overloads(2), []int64{200, 400}, 3, ""},

	{"no retry without RetryableError", "insert", 1, nil, []step{fails(462, labelOverloaded)}, nil, 1, "462 overloaded"},
	{"no retry without SystemOverloadedError", "insert", 1, nil, []step{fails(462, labelRetryable)}, nil, 1, "462 retryable"},
	{"retryable as a read and overloaded: wait, twice at most", "find", 1, nil, slices.Repeat([]step{fails(91, labelOverloaded)}, 9), []int64{200, 400}, 3, "91 overloaded"},
	{"retryable as a write and overloaded", "insert", 1, nil, slices.Repeat([]step{fails(91, labelOverloaded, labelWrite)}, 9), []int64{200, 400}, 3, "91 overloaded"},
	{"retryable as a read only: at once, and once", "find", 1, nil, slices.Repeat([]step{fails(91)}, 9), nil, 2, "91"},
	{"after another error the overload counts from its attempt", "find", 1, nil, append([]step{fails(91)}, overloads(9)...), []int64{400}, 3, "462 overloaded retryable"},
	{"another error after an overload is retried at once", "find", 1, nil, append(overloads(1), fails(91), fails(91)), []int64{200}, 3, "91"},
	{"an error that is not retryable ends it", "find", 1, nil, append(overloads(1), fails(2)), []int64{200}, 2, "2"},
	{"no write was performed: the error before is raised", "update", 1, nil, append(overloads(1), fails(2, "NoWritesPerformed")), []int64{200}, 2, "462 overloaded retryable"},

	{"retryReads off: a read", "find", 1, uri("retryReads", false), overloads(9), nil, 1, "462 overloaded retryable"},
	{"retryReads off: a write", "insert", 1, uri("retryReads", false), overloads(9), []int64{200, 400}, 3, "462 overloaded retryable"},
	{"retryReads off: runCommand", "ping", 1, uri("retryReads", false), overloads(9), nil, 1, "462 overloaded retryable"},
	{"retryWrites off: a read", "find", 1, uri("retryWrites", false), overloads(9), []int64{200, 400}, 3, "462 overloaded retryable"},
	{"retryWrites off: a write", "insert", 1, uri("retryWrites", false), overloads(9), nil, 1, "462 overloaded retryable"},
	{"retryWrites off: a write that is never retryable", "create", 1, uri("retryWrites", false), overloads(9), nil, 1, "462 overloaded retryable"},
	{"retryWrites off: runCommand", "ping", 1, uri("retryWrites", false), overloads(9), nil, 1, "462 overloaded retryable"},

	{"timeoutMS: MAX_RETRIES holds all the same", "find", 1, uri("timeoutMS", 60000), overloads(9), []int64{200, 400}, 3, "462 overloaded retryable"},
	{"timeoutMS: it caps what no overload error caused", "find", 1, uri("timeoutMS", 60000), append(overloads(1), slices.Repeat([]step{fails(91)}, 9)...), []int64{200}, 3, "91"},
	{"timeoutMS: retried more often already, never further", "find", 1, uri("timeoutMS", 60000), append(slices.Repeat([]step{fails(91)}, 5), overloads(9)...), nil, 6, "462 overloaded retryable"},
	{"timeoutMS: without overload retries go on", "find", 1, uri("timeoutMS", 60000), slices.Repeat([]step{fails(91)}, 9), nil, 10, ""},
	{"timeoutMS: a backoff past the deadline is not begun, and no timeout is raised", "find", 1, uri("timeoutMS", 15000),
		slices.Repeat([]step{based(int32(5000))}, 9), []int64{10000}, 2, "462 overloaded retryable"},
	{"timeoutMS: a backoff up to the deadline leaves no time to send", "find", 1,
		bson.D{{Key: "timeoutMS", Value: 20000}, {Key: "maxAdaptiveRetries", Value: 5}}, slices.Repeat([]step{based(int32(5000))}, 9),
		[]int64{10000, 10000}, 2, "timeout 462 overloaded retryable"},
	{"timeoutMS 0 ends nothing", "find", 1, uri("timeoutMS", 0), slices.Repeat([]step{based(int32(5000))}, 9), []int64{10000, 10000}, 3, "462 overloaded retryable"},
}

// play runs a row, and says what went otherwise than it wants.
func (r overloadRow) play(t *testing.T, policy *retry.Policy) []string {
	t.Helper()
	s := script(t, "replicaset", 1)
	op := oneOf(r.command)
	s.on(op.command, r.steps...)
	v := newVirtual()
	e, err := New(v.options(r.jitter))
	if err != nil {
		t.Fatal(err)
	}
	if policy != nil {
		e.(*driver).policy = policy
	}
	b := openOn(t, s, e, r.uri)
	begun := v.options(0).Now()
	out := b.do(op.object, op.name, op.args)
	var wrong []string
	differ := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", what, got, want))
		}
	}
	differ("commands sent", len(s.commands(op.command)), r.sent)
	differ("delays", v.delays(), r.slept)
	var sum int64
	for _, d := range r.slept {
		sum += d
	}
	differ("time", v.options(0).Now().Sub(begun), time.Duration(sum)*time.Millisecond)
	differ("raised", inWords(out.Err), r.raised)
	// The report has each delay, those of 0 as well.
	var reported []int64
	for _, d := range out.Decisions {
		if d.Action == retry.BackOff.String() && d.DelayMS > 0 {
			reported = append(reported, int64(math.Round(d.DelayMS)))
		}
	}
	differ("delays in the report", reported, r.slept)
	return wrong
}

func inWords(e *result.Error) string {
	if e == nil {
		return ""
	}
	var w []string
	if e.Timeout {
		w = append(w, "timeout")
	}
	w = append(w, fmt.Sprint(e.Code))
	if e.HasLabel(labelOverloaded) {
		w = append(w, "overloaded")
	}
	if e.HasLabel(labelRetryable) {
		w = append(w, "retryable")
	}
	return strings.Join(w, " ")
}

func TestOverloadOnAVirtualClock(t *testing.T) {
	for _, r := range overloadRows {
		t.Run(r.why, func(t *testing.T) {
			t.Parallel()
			for _, w := range r.play(t, nil) {
				t.Error(w)
			}
		})
	}
}

// TestOverloadRowsCatchMutants changes the policy. The row that names the
// statement has to fail.
func TestOverloadRowsCatchMutants(t *testing.T) {
	without := func(ids ...string) func(*retry.Policy) {
		return func(p *retry.Policy) {
			p.Rules = slices.DeleteFunc(p.Rules, func(id string) bool { return slices.Contains(ids, id) })
		}
	}
	for _, m := range []struct {
		why    string
		change func(*retry.Policy)
		row    string
	}{
		{"three retries", func(p *retry.Policy) { p.Overload.MaxRetries = 3 }, "prose test 3: MAX_RETRIES is 2"},
		{"the formula before 2026-07-08", func(p *retry.Policy) { p.Overload.Exponent = -1 }, "prose test 1: jitter 1 waits 200 and 400 ms"},
		{"another base", func(p *retry.Policy) { p.Overload.BaseBackoff = 101 * time.Millisecond }, "prose test 1: jitter 1 waits 200 and 400 ms"},
		{"no cap", func(p *retry.Policy) { p.Overload.MaxBackoff = time.Hour }, "no delay is above MAX_BACKOFF"},
		{"deaf to baseBackoffMS", func(p *retry.Policy) { p.Overload.ServerBase = false }, "prose test 5: the server's base of 50 ms"},
		{"no overload retries", without("B1"), "updateMany"},
		{"the limit of other policies stays", without("B2"), "timeoutMS: it caps what no overload error caused"},
		{"the options allow everything", without("B3"), "retryWrites off: runCommand"},
		{"no limit", without("B4"), "maxAdaptiveRetries 5"},
		{"sleep past the deadline", without("B5"), "timeoutMS: a backoff past the deadline is not begun, and no timeout is raised"},
		{"no backoff", without("B6"), "the second attempt succeeds"},
		{"send after the deadline", without("R36b", "R37"), "timeoutMS: a backoff up to the deadline leaves no time to send"},
	} {
		t.Run(m.why, func(t *testing.T) {
			t.Parallel()
			p, err := retry.Named("")
			if err != nil {
				t.Fatal(err)
			}
			m.change(p)
			i := slices.IndexFunc(overloadRows, func(r overloadRow) bool { return r.why == m.row })
			if i < 0 {
				t.Fatal("there is no such row")
			}
			if len(overloadRows[i].play(t, p)) == 0 {
				t.Errorf("%q does not notice", m.row)
			}
		})
	}
}

// TestOverloadOnTheRealClock is prose test 1 once more. A run can never be
// faster than its backoffs; how much slower it is says nothing.
func TestOverloadOnTheRealClock(t *testing.T) {
	t.Parallel()
	s := script(t, "replicaset", 1)
	s.on("insert", overloads(9)...)
	b := open(t, s, Options{Random: func() float64 { return 1 }}, nil)
	op := oneOf("insert")
	begun := time.Now()
	out := b.do(op.object, op.name, op.args)
	if took := time.Since(begun); took < 600*time.Millisecond || inWords(out.Err) != "462 overloaded retryable" {
		t.Errorf("%v after %v", inWords(out.Err), took)
	}
}

// TestBackoffNone decides delays, reports them, and does not sleep.
func TestBackoffNone(t *testing.T) {
	t.Parallel()
	s := script(t, "replicaset", 1)
	s.on("insert", overloads(9)...)
	s.on("commitTransaction", fails(251, labelTransient))
	o := Options{Backoff: BackoffNone, Random: func() float64 { return 1 }, Sleep: func(context.Context, time.Duration) error {
		t.Error("it slept")
		return nil
	}}
	b := open(t, s, o, nil)
	op := oneOf("insert")
	out := b.do(op.object, op.name, op.args)
	if got := reported(out); fmt.Sprint(got) != "[200 400]" || len(s.commands("insert")) != 3 {
		t.Errorf("delays %v, %d inserts", got, len(s.commands("insert")))
	}
	if _, err := New(Options{Backoff: "some"}); err == nil {
		t.Error("any backoff is taken")
	}
}

// reported gives the delays of the decisions, in milliseconds.
func reported(out result.Outcome) (delays []float64) {
	for _, d := range out.Decisions {
		if d.Action == retry.BackOff.String() {
			delays = append(delays, d.DelayMS)
		}
	}
	return delays
}

// TestCursorsBackOff: getMore and killCursors are subject to the policy like
// any other command.
func TestCursorsBackOff(t *testing.T) {
	for _, c := range []struct {
		why, command string
		uri          bson.D
		steps        int
		sent         int
	}{
		{"getMore", "getMore", nil, 2, 3},
		{"getMore, to the end", "getMore", nil, 9, 3},
		{"getMore is a read", "getMore", uri("retryReads", false), 9, 1},
		{"getMore and retryWrites", "getMore", uri("retryWrites", false), 2, 3},
		{"killCursors", "killCursors", nil, 2, 3},
		{"killCursors, to the end", "killCursors", nil, 9, 3},
		{"killCursors and maxAdaptiveRetries", "killCursors", uri("maxAdaptiveRetries", 1), 9, 2},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			s.on("find", step{reply: bson.D{{Key: "ok", Value: 1.0}, cursorField("firstBatch", 7, "db.coll", bson.D{{Key: "x", Value: 1}})}})
			s.on(c.command, overloads(c.steps)...)
			v := newVirtual()
			b := open(t, s, v.options(1), c.uri)
			if out := b.Do(context.Background(), engine.Operation{Object: "collection", Name: "createFindCursor", SaveAs: "cursor",
				Arguments: raw(t, bson.D{{Key: "filter", Value: bson.D{}}, {Key: "batchSize", Value: 1}})}); out.Err != nil {
				t.Fatal(out.Err)
			}
			b.do("cursor", "iterateOnce", nil)
			if c.command == "getMore" {
				b.do("cursor", "iterateOnce", nil)
			} else {
				b.do("cursor", "close", nil)
			}
			if n := len(s.commands(c.command)); n != c.sent || len(v.delays()) != c.sent-1 {
				t.Errorf("%d were sent with delays %v, want %d", n, v.delays(), c.sent)
			}
		})
	}
}

// TestRetriesKeepTheirNumbers: an overload retry of a retryable write has the
// txnNumber of the first attempt, that of the first command in a transaction
// its startTransaction as well.
func TestRetriesKeepTheirNumbers(t *testing.T) {
	for _, c := range []struct {
		why, command string
		txn          bool
		fields       string // of each attempt: txnNumber, startTransaction
	}{
		{"a retryable write", "insert", false, "1/- 1/- 1/-"},
		{"a write that has no number", "update", false, "-/- -/- -/-"},
		{"a read", "find", false, "-/- -/- -/-"},
		{"the first command of a transaction writes", "insert", true, "1/true 1/true 1/true"},
		{"the first command of a transaction reads", "find", true, "1/true 1/true 1/true"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			s.on(c.command, overloads(2)...)
			b := open(t, s, newVirtual().options(1), nil)
			b.entity("session", "session", bson.D{{Key: "client", Value: "client"}})
			op := oneOf(c.command)
			if c.txn {
				b.do("session", "startTransaction", nil)
			}
			args := append(slices.Clone(op.args), bson.E{Key: "session", Value: "session"})
			if out := b.do(op.object, op.name, args); out.Err != nil {
				t.Fatal(out.Err)
			}
			var got []string
			for _, cmd := range s.commands(c.command) {
				word := func(key string) string {
					v, err := cmd.LookupErr(key)
					if err != nil {
						return "-"
					}
					if n, ok := enginekit.Integer(v); ok {
						return fmt.Sprint(n)
					}
					return fmt.Sprint(v.Boolean())
				}
				got = append(got, word("txnNumber")+"/"+word("startTransaction"))
			}
			if strings.Join(got, " ") != c.fields {
				t.Errorf("sent %v, want %s", got, c.fields)
			}
			if !c.txn {
				return
			}
			b.do(op.object, op.name, args)
			all := s.commands(c.command)
			if _, err := all[len(all)-1].LookupErr("startTransaction"); err == nil {
				t.Error("the second command of the transaction starts it again")
			}
		})
	}
}

// TestCommitsKeepTheirWriteConcern until an attempt has failed that may have
// written.
func TestCommitsKeepTheirWriteConcern(t *testing.T) {
	overload, other := fails(462, both...), fails(91, labelWrite)
	for _, c := range []struct {
		why   string
		steps []step
		want  string // w of each attempt
	}{
		{"overload errors only", []step{overload, overload}, "1 1 1"},
		{"another error", []step{other}, "1 majority"},
		{"another error after an overload error", []step{overload, other}, "1 1 majority"},
		{"an overload error after another one", []step{other, overload}, "1 majority majority"},
		{"SystemOverloadedError alone does not say that nothing was written", []step{fails(91, labelWrite, labelOverloaded)}, "1 majority"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			s.on("commitTransaction", c.steps...)
			b := open(t, s, newVirtual().options(1), nil)
			b.entity("session", "session", bson.D{{Key: "client", Value: "client"}})
			b.do("session", "startTransaction", bson.D{{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}})
			op := oneOf("insert")
			b.do(op.object, op.name, append(slices.Clone(op.args), bson.E{Key: "session", Value: "session"}))
			if out := b.do("session", "commitTransaction", nil); out.Err != nil {
				t.Fatal(out.Err)
			}
			var got []string
			for _, cmd := range s.commands("commitTransaction") {
				w := cmd.Lookup("writeConcern", "w")
				if n, ok := enginekit.Integer(w); ok {
					got = append(got, fmt.Sprint(n))
				} else {
					got = append(got, w.StringValue())
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("w was %v, want %s", got, c.want)
			}
		})
	}
}

// TestOverloadRetargeting: the overloaded member is avoided if the option says
// so, and only then.
func TestOverloadRetargeting(t *testing.T) {
	for _, c := range []struct {
		why      string
		kind     string
		retarget bool
		step     step
		want     string // the members asked
	}{
		{"off", "replicaset", false, fails(462, both...), "0 0"},
		{"on", "replicaset", true, fails(462, both...), "0 1"},
		{"on, and no overload error", "replicaset", true, fails(134), "0 0"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, c.kind, 2)
			s.on("find", c.step)
			b := open(t, s, newVirtual().options(0), bson.D{{Key: "readPreference", Value: "primaryPreferred"},
				{Key: "enableOverloadRetargeting", Value: c.retarget}})
			for _, mode := range []string{"primary", "secondary"} { // both are known then
				ping := append(slices.Clone(oneOf("ping").args), bson.E{Key: "readPreference", Value: bson.D{{Key: "mode", Value: mode}}})
				if out := b.do("database", "runCommand", ping); out.Err != nil {
					t.Fatal(out.Err)
				}
			}
			op := oneOf("find")
			out := b.do(op.object, op.name, op.args)
			var got []string
			for _, d := range out.Decisions {
				if d.Action == retry.Send.String() {
					got = append(got, fmt.Sprint(slices.IndexFunc(s.members, func(m *member) bool { return m.address == d.Server })))
				}
			}
			if strings.Join(got, " ") != c.want || out.Err != nil {
				t.Errorf("asked %v, want %s: %v", got, c.want, out.Err)
			}
		})
	}
}

// TestHandshakesTellOfBackpressure on connections of applications, of monitors
// and of round trip time alike.
func TestHandshakesTellOfBackpressure(t *testing.T) {
	for _, kind := range []string{"single", "replicaset", "sharded", "load-balanced"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := script(t, kind, 1)
			b := open(t, s, Options{}, nil)
			op := oneOf("find")
			if out := b.do(op.object, op.name, op.args); out.Err != nil {
				t.Fatal(out.Err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			least := 2 // a monitor, and an application
			if kind == "load-balanced" {
				least = 1
			}
			if len(s.first) < least {
				t.Errorf("%d handshakes", len(s.first))
			}
			for _, d := range s.first {
				if v, ok := d.Lookup("backpressure").StringValueOK(); !ok || v != "2" {
					t.Errorf("a handshake without it: %v", d)
				}
			}
		})
	}
}

// tries plays withTransaction with a callback that inserts, or fails.
func tries(t *testing.T, s *scripted, o Options, args bson.D, callback func(b *bench, n int) *result.Error) result.Outcome {
	t.Helper()
	b := open(t, s, o, nil)
	b.entity("session", "session", bson.D{{Key: "client", Value: "client"}})
	n := 0
	return b.Do(context.Background(), engine.Operation{Object: "session", Name: "withTransaction",
		Arguments: raw(t, append(bson.D{}, args...)), Callback: func(context.Context) *result.Error {
			n++
			return callback(b, n)
		}})
}

func inserts(b *bench, _ int) *result.Error {
	op := oneOf("insert")
	return b.do(op.object, op.name, append(slices.Clone(op.args), bson.E{Key: "session", Value: "session"})).Err
}

// TestTransactionsBackOff holds the prose test "Retry Backoff is Enforced" of
// the Convenient API for Transactions, with jitter 0 and 1.
func TestTransactionsBackOff(t *testing.T) {
	for _, c := range []struct {
		why    string
		jitter float64
		want   time.Duration // of 13 backoffs
	}{
		{"without jitter there is no delay", 0, 0},
		{"5 ms · 1.5^n, 500 ms at most: 7.5, 11.25, 16.875, … 432.487, 500, 500", 1, 2_282_463_378 * time.Nanosecond},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			s.on("commitTransaction", slices.Repeat([]step{fails(251, labelTransient)}, 13)...)
			v := newVirtual()
			o := v.options(c.jitter)
			begun := o.Now()
			out := tries(t, s, o, nil, inserts)
			if took := o.Now().Sub(begun); took.Round(time.Microsecond) != c.want.Round(time.Microsecond) || out.Err != nil {
				t.Errorf("%v after %v, want %v", out.Err, took, c.want)
			}
			if n := len(s.commands("commitTransaction")); n != 14 || len(reported(out)) != 13 {
				t.Errorf("%d commits, %d delays in the report", n, len(reported(out)))
			}
		})
	}
}

// TestTransactionsEnd holds the prose tests "Retry Timeout is Enforced" and
// "Callback Raises a Custom Error".
func TestTransactionsEnd(t *testing.T) {
	const late = 119_995 * time.Millisecond
	transient := &result.Error{Message: "transient", Kind: "server", Code: 251, HasCode: true, Labels: []string{labelTransient, "Other"}}
	for _, c := range []struct {
		why    string
		jitter float64
		args   bson.D
		pass   time.Duration // while the callback runs
		err    *result.Error // of the callback
		commit []step
		tries  int
		kind   string
		labels []string
		over   bool // timeoutMS
	}{
		{"the callback is transient, and time is over", 0, nil, 120 * time.Second, transient, nil, 1, "timeout", transient.Labels, false},
		{"the next backoff would outlast the time", 1, nil, late, transient, nil, 1, "timeout", transient.Labels, false},
		{"a commit is not known, and time is over", 0, nil, 120 * time.Second, nil, []step{fails(64, labelUnknownCommit)}, 1, "timeout", []string{labelUnknownCommit}, false},
		{"a commit is transient, and time is over", 0, nil, 120 * time.Second, nil, []step{fails(251, labelTransient)}, 1, "timeout", []string{labelTransient}, false},
		{"timeoutMS is over", 0, uri("timeoutMS", 60000), time.Minute, transient, nil, 1, "timeout", transient.Labels, true},
		{"an error of the callback's own", 0, nil, 0, &result.Error{Message: "mine", Kind: "mine"}, nil, 1, "mine", nil, false},
		{"an error of its own is not late", 0, nil, 200 * time.Second, &result.Error{Message: "mine", Kind: "mine"}, nil, 1, "mine", nil, false},
		{"a commit past its maxTimeMS is not tried again", 0, nil, 0, nil, []step{fails(50)}, 1, "server", []string{labelUnknownCommit}, false},
		{"a commit that is not known is tried again", 0, nil, 0, nil, []step{fails(64, labelUnknownCommit)}, 1, "", nil, false},
		{"a transient commit starts anew", 1, nil, 0, nil, []step{fails(251, labelTransient)}, 2, "", nil, false},
		{"an overload error that is not transient is raised", 1, nil, 0, nil, overloads(3), 1, "server", both, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			s.on("commitTransaction", c.commit...)
			v := newVirtual()
			n := 0
			out := tries(t, s, v.options(c.jitter), c.args, func(b *bench, i int) *result.Error {
				n = i
				err := inserts(b, i)
				v.mu.Lock()
				v.now = v.now.Add(c.pass)
				v.mu.Unlock()
				if c.err != nil {
					return c.err
				}
				return err
			})
			if n != c.tries {
				t.Errorf("the callback ran %d times, want %d", n, c.tries)
			}
			e := out.Err
			if c.kind == "" {
				if e != nil {
					t.Errorf("%v", e)
				}
				return
			}
			if e == nil || e.Kind != c.kind || !slices.Equal(e.Labels, c.labels) || e.Timeout != c.over {
				t.Errorf("raised %+v, want %s with %v", e, c.kind, c.labels)
			}
			if e != nil && c.err != nil && !strings.Contains(e.Message, c.err.Message) {
				t.Errorf("%q does not expose its cause", e.Message)
			}
		})
	}
}

// TestTransactionsWithOverload: each command of a transaction backs off by
// itself, under timeoutMS or not.
func TestTransactionsWithOverload(t *testing.T) {
	for _, c := range []struct {
		why     string
		args    bson.D
		on      map[string][]step
		slept   string
		commits int
		err     error
	}{
		{"its first command", nil, map[string][]step{"insert": overloads(2)}, "[200 400]", 1, nil},
		{"commit", nil, map[string][]step{"commitTransaction": overloads(2)}, "[200 400]", 3, nil},
		{"both", nil, map[string][]step{"insert": overloads(1), "commitTransaction": overloads(1)}, "[200 200]", 2, nil},
		{"under timeoutMS", uri("timeoutMS", 60000), map[string][]step{"insert": overloads(1), "commitTransaction": overloads(1)}, "[200 200]", 2, nil},
		{"transient as well: the commands first, then the transaction", nil,
			map[string][]step{"insert": slices.Repeat([]step{fails(462, append(both[:2:2], labelTransient)...)}, 3)}, "[200 400 7]", 1, nil},
		{"one deadline for all", uri("timeoutMS", 15000), map[string][]step{"insert": {based(int32(5000))}, "commitTransaction": {based(int32(5000))}},
			"[10000]", 1, errors.New("overloaded")},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			for command, steps := range c.on {
				s.on(command, steps...)
			}
			v := newVirtual()
			out := tries(t, s, v.options(1), c.args, inserts)
			if fmt.Sprint(v.delays()) != c.slept || len(s.commands("commitTransaction")) != c.commits || (out.Err != nil) != (c.err != nil) {
				t.Errorf("slept %v, %d commits, %v; want %s, %d", v.delays(), len(s.commands("commitTransaction")), out.Err, c.slept, c.commits)
			}
			for _, cmd := range s.commands("abortTransaction") {
				if c.commits > 0 && c.err == nil && len(c.on["insert"]) < 3 {
					t.Errorf("aborted: %v", cmd)
				}
			}
		})
	}
}
