package reference

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/reference/retry"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

func TestOrderOfPoolEvents(t *testing.T) {
	of := func(kind, reason string, id int64) *event.PoolEvent {
		return &event.PoolEvent{Type: kind, Address: "a:1", ConnectionID: id, Reason: reason}
	}
	out, in, cleared := of(event.ConnectionCheckedOut, "", 1), of(event.ConnectionCheckedIn, "", 1), of(event.ConnectionPoolCleared, "", 0)
	stale, failed := of(event.ConnectionClosed, event.ReasonStale, 1), of(event.ConnectionClosed, event.ReasonError, 1)
	other := of(event.ConnectionClosed, event.ReasonStale, 2)
	type list = []*event.PoolEvent
	for _, row := range []struct {
		reason      string
		come, want  list
		interrupted bool
	}{
		{"an interrupted connection is checked in first", list{out, cleared, stale, other, in}, list{out, cleared, other, in, stale}, false},
		{"and known meanwhile", list{out, stale}, list{out}, true},
		{"one that is checked in before does not matter", list{out, in, stale}, list{out, in, stale}, false},
		{"one that is idle is closed at once", list{stale}, list{stale}, false},
		{"one that failed, too", list{out, failed}, list{out, failed}, false},
		{"it is told once", list{out, stale, in, out, in}, list{out, in, stale, out, in}, false},
	} {
		u := newInUse()
		var got list
		for _, e := range row.come {
			got = append(got, u.order(e)...)
		}
		if diff := cmp.Diff(row.want, got); diff != "" || u.interrupted("a:1", 1) != row.interrupted {
			t.Errorf("%s: interrupted is %t (-want +got)\n%s", row.reason, u.interrupted("a:1", 1), diff)
		}
	}
}

// A pool that is paused is not cleared again.
func TestNews(t *testing.T) {
	l := &messageLog{paused: map[string]bool{}, failed: map[string][]driverMessage{}}
	pool, other := d("serverHost", "a", "serverPort", int64(1)), d("serverHost", "a", "serverPort", int64(2))
	service := append(d("serviceId", "s"), pool...)
	const ready, cleared = "Connection pool ready", "Connection pool cleared"
	for _, row := range []struct {
		reason, message string
		data            bson.D
		news            bool
	}{
		{"ready", ready, pool, true},
		{"cleared", cleared, pool, true},
		{"cleared again", cleared, pool, false},
		{"another pool", cleared, other, true},
		{"another message", "Connection closed", pool, true},
		{"a check-out that failed is told with its event", "Connection checkout failed", pool, false},
		{"ready again", ready, pool, true},
		{"so that it can be cleared", cleared, pool, true},
		{"ready once more", ready, pool, true},
		{"cleared for a service", cleared, service, true},
		{"which does not pause it", cleared, service, true},
	} {
		if got := l.news(row.message, "debug", row.data); got != row.news {
			t.Errorf("%s: got %t", row.reason, got)
		}
	}
}

// Events of the topology are told with the messages about them.
func TestEventsWaitForTheirMessages(t *testing.T) {
	of := func(port int64) []any { return []any{"topologyId", "t", "serverHost", "a", "serverPort", port} }
	for _, row := range []struct {
		reason, observed, text, address string
		message                         string
		data                            []any
		before, after                   bool
	}{
		{"nothing is observed", "", heartbeatFailed, "a:1", "", nil, true, true},
		{"messages of no such level are", "info", heartbeatFailed, "a:1", "", nil, true, true},
		{"its message", "debug", heartbeatFailed, "a:1", heartbeatFailed, of(1), false, true},
		{"that of another server", "debug", heartbeatFailed, "a:1", heartbeatFailed, of(2), false, false},
		{"another message", "debug", heartbeatFailed, "a:1", heartbeatSucceeded, of(1), false, false},
		{"that of a topology", "debug", topologyChanged, "", topologyChanged, []any{"topologyId", "t"}, false, true},
	} {
		var log *messageLog
		if row.observed != "" {
			var err error
			if log, err = newMessageLog(time.Now, raw(t, d("v", d("topology", row.observed))).Lookup("v")); err != nil {
				t.Fatal(err)
			}
		}
		told := false
		log.with(row.text, row.address, func() { told = true })
		if told != row.before {
			t.Errorf("%s: told at once: %t", row.reason, told)
		}
		if row.message != "" {
			log.Info(1, row.message, row.data...)
		}
		if told != row.after {
			t.Errorf("%s: told in the end: %t", row.reason, told)
		}
	}
}

// TestNoTokenIsSpentTwice has many operations fail at the same time.
func TestNoTokenIsSpentTwice(t *testing.T) {
	p, err := retry.Named("client-backpressure@2025-12")
	if err != nil {
		t.Fatal(err)
	}
	p.Overload.Bucket.Capacity = 100 * retry.Token
	bucket := newTokenBucket(p)
	var spent atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s := retry.State{Policy: p, Attempt: 1, Settings: retry.Settings{Operation: retry.Lookup("find"), RetryReads: true}}
				if _, d := bucket.next(s, retry.Input{Kind: retry.Failed, Failure: retry.Failure{Kind: retry.Server, Code: 462,
					Labels: []string{labelOverloaded, labelRetryable}}}); d.Action == retry.BackOff {
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

func TestDescribe(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	about, err := e.Describe(t.Context())
	if err != nil || !slices.IsSorted(about.Operations) || len(about.Operations) < 60 ||
		!about.Serves("collection", "find") || about.Serves("clientEncryption", "encrypt") {
		t.Errorf("%v: %+v", err, about)
	}
	for _, o := range []Options{{Policy: "none"}, {Backoff: "some"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
