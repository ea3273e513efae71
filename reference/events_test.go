package reference

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
)

func TestOrderOfPoolEvents(t *testing.T) {
	of := func(kind, reason string, id int64) *event.PoolEvent {
		return &event.PoolEvent{Type: kind, Address: "a:1", ConnectionID: id, Reason: reason}
	}
	words := map[string]*event.PoolEvent{"out": of(event.ConnectionCheckedOut, "", 1),
		"in":      of(event.ConnectionCheckedIn, "", 1),
		"cleared": of(event.ConnectionPoolCleared, "", 0), "stale": of(event.ConnectionClosed, event.ReasonStale, 1),
		"failed": of(event.ConnectionClosed, event.ReasonError, 1), "other": of(event.ConnectionClosed, event.ReasonStale, 2)}
	for _, row := range []struct{ reason, events, want string }{
		{"an interrupted connection is checked in first", "out cleared stale other in", "out cleared other in stale"},
		{"an interrupted connection is known before it is checked in", "out stale", "out interrupted"},
		{"a connection was checked in before", "out in stale", "out in stale"},
		{"an idle connection is closed at once", "stale", "stale"},
		{"a failed connection is closed at once", "out failed", "out failed"},
		{"the closed event is written once", "out stale in out in", "out in stale out in"},
	} {
		u, got := newSockets(nil), []string(nil)
		for word := range strings.FieldsSeq(row.events) {
			for _, e := range u.reorder(words[word]) {
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

// TestNoTokenIsSpentTwice makes many operations fail concurrently.
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
					Labels: []string{codes.SystemOverloadedError, codes.RetryableError}}}); d.Action == retry.BackOff {
					spent.Add(1)
				}
			}
		})
	}
	all.Wait()
	if spent.Load() != 100 || bucket.tokens != 0 {
		t.Errorf("%d retries with 100 tokens, %v tokens left", spent.Load(), bucket.tokens)
	}
}

func TestDescribe(t *testing.T) {
	e, err := New(Options{})
	testkit.Check(t, err)
	about, err := e.Describe(t.Context())
	if err != nil || !slices.IsSorted(about.Operations) || len(about.Operations) < 60 ||
		!about.Supports("collection", "find") || about.Supports("clientEncryption", "encrypt") {
		t.Errorf("%v: %+v", err, about)
	}
	for _, o := range []Options{{Policy: "none"}, {Backoff: "some"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
