package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func full(rate, burst float64, depth int64) *limiter {
	l := new(limiter)
	l.configure(rate, burst, depth)
	l.balance = l.burst
	return l
}

func TestLimiterQueue(t *testing.T) { synctest.Test(t, limiterQueue) }

func limiterQueue(t *testing.T) {
	l := full(10, 0.2, 2) // a burst of two, one token every 100 ms, a queue of two
	for range 2 {
		if got := l.acquire(t.Context()); got != nil {
			t.Fatalf("within the burst: %v", got)
		}
	}
	ended := make(chan error, 3)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- l.acquire(t.Context()) }()
	synctest.Wait()
	go func() { ended <- l.acquire(ctx) }()
	synctest.Wait()
	if got := l.acquire(t.Context()); got != errRejected {
		t.Errorf("with a full queue: %v", got)
	}
	if c := l.status(); c.Added-c.Removed != 2 || c.Rejected != 1 || c.Tokens != 0 {
		t.Errorf("counts %+v", c)
	}
	cancel()
	if got := <-ended; got != failpoint.ErrClose {
		t.Errorf("canceled request: %v", got)
	}
	time.Sleep(99 * time.Millisecond)
	synctest.Wait()
	if len(ended) != 0 {
		t.Error("the wait of 100 ms ended after 99 ms")
	}
	time.Sleep(time.Millisecond)
	if got := <-ended; got != nil {
		t.Errorf("queued request: %v", got)
	}
	time.Sleep(100 * time.Millisecond) // the returned token must not count twice
	if c := l.status(); c.Added != c.Removed || c.Interrupted != 1 || c.Successful != 3 || c.Tokens < 0.99 ||
		c.Tokens > 1.01 {
		t.Errorf("at the end: %+v", c)
	}
}

func TestLimiterConfigure(t *testing.T) { synctest.Test(t, limiterConfigure) }

func limiterConfigure(t *testing.T) {
	for _, row := range []struct {
		reason      string
		take        int
		rate, burst float64
		want        float64
	}{
		{"infinite bucket", -1, 20, 1, 20},
		{"partly used bucket", 6, 20, 1, 4},
		{"full bucket", 0, 100, 1, 10},
		{"empty bucket", 10, 100, 1, 0},
	} {
		l := full(10, 1, 0)
		if row.take < 0 {
			l = full(1e9, 1e300, 0) // like the default
		}
		for range row.take {
			testkit.Check(t, l.acquire(t.Context()))
		}
		l.configure(row.rate, row.burst, 5)
		testkit.Equal(t, row.reason+": tokens", l.status().Tokens, row.want)
		time.Sleep(time.Hour)
		testkit.Equal(t, row.reason+": tokens after an hour", l.status().Tokens, row.rate*row.burst)
	}
	l := full(1, 0.001, 0) // capacity below one token
	if l.acquire(t.Context()) != errRejected {
		t.Error("a limiter with a capacity below one token admitted a request")
	}
}
