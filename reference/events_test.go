package reference

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/retry"
	"go.mongodb.org/mongo-driver/v2/event"
)

func TestOrderOfPoolEvents(t *testing.T) {
	of := func(kind, reason string, id int64) *event.PoolEvent {
		return &event.PoolEvent{Type: kind, Address: "a:1", ConnectionID: id, Reason: reason}
	}
	words := map[string]*event.PoolEvent{"out": of(event.ConnectionCheckedOut, "", 1), "in": of(event.ConnectionCheckedIn, "", 1),
		"cleared": of(event.ConnectionPoolCleared, "", 0), "stale": of(event.ConnectionClosed, event.ReasonStale, 1),
		"failed": of(event.ConnectionClosed, event.ReasonError, 1), "other": of(event.ConnectionClosed, event.ReasonStale, 2)}
	for _, row := range []struct{ reason, come, want string }{
		{"an interrupted connection is checked in first", "out cleared stale other in", "out cleared other in stale"},
		{"and known meanwhile", "out stale", "out interrupted"},
		{"one that is checked in before does not matter", "out in stale", "out in stale"},
		{"one that is idle is closed at once", "stale", "stale"},
		{"one that failed, too", "out failed", "out failed"},
		{"it is told once", "out stale in out in", "out in stale out in"},
	} {
		u, got := newSockets(nil), []string(nil)
		for word := range strings.FieldsSeq(row.come) {
			for _, e := range u.order(words[word]) {
				for name, w := range words {
					if *w == *e {
						got = append(got, name)
					}
				}
			}
		}
		if u.interrupted("a:1", 1) {
			got = append(got, "interrupted")
		}
		testkit.Equal(t, row.reason, strings.Join(got, " "), row.want)
	}
}

// TestNoTokenIsSpentTwice has many operations fail at the same time.
func TestNoTokenIsSpentTwice(t *testing.T) {
	p, err := retry.Named("client-backpressure@2025-12")
	testkit.Check(t, err)
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
	testkit.Check(t, err)
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
