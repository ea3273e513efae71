package server

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// handClock is a clock that tests turn. Who sleeps is counted.
type handClock struct {
	mu       sync.Mutex
	now      time.Time
	sleepers map[chan struct{}]time.Time
	changed  chan struct{} // closed and replaced when someone lies down
}

func newHandClock() *handClock {
	return &handClock{now: time.Unix(1000, 0), sleepers: map[chan struct{}]time.Time{}, changed: make(chan struct{})}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) Sleep(ctx context.Context, d time.Duration) bool {
	awake := make(chan struct{})
	c.mu.Lock()
	c.sleepers[awake] = c.now.Add(d)
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	select {
	case <-awake:
		return true
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.sleepers, awake)
		c.mu.Unlock()
		return false
	}
}

// advance turns the clock and wakes whose time has come.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for awake, at := range c.sleepers {
		if !at.After(c.now) {
			delete(c.sleepers, awake)
			close(awake)
		}
	}
}

// await waits until so many sleep.
func (c *handClock) await(t *testing.T, n int) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		c.mu.Lock()
		asleep, changed := len(c.sleepers), c.changed
		c.mu.Unlock()
		if asleep == n {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d wait in the queue, not %d", asleep, n)
		}
	}
}

// counting is a token bucket of one token every so many milliseconds, in whole
// numbers, that lives through each millisecond.
type counting struct{ every, burst, parts int }

func (c *counting) pass(ms int) { c.parts = min(c.burst*c.every, c.parts+ms) }

func (c *counting) try() bool {
	if c.parts < c.every {
		return false
	}
	c.parts -= c.every
	return true
}

func TestLimiterAgainstNaiveTwin(t *testing.T) {
	chance := rand.New(rand.NewPCG(11, 11))
	granted, refused := 0, 0
	for range 400 {
		// Rates whose tokens a float64 counts exactly.
		every, burst := 125<<chance.IntN(4), 1+chance.IntN(4)
		clock := newHandClock()
		rate := 1000 / float64(every)
		l := newLimiter(clock, rate, float64(burst)/rate, 0)
		twin := counting{every: every, burst: burst, parts: burst * every}
		for step := range 60 {
			pass := 125 * chance.IntN(6)
			clock.advance(time.Duration(pass) * time.Millisecond)
			twin.pass(pass)
			got, want := l.try(), twin.try()
			if got != want {
				t.Fatalf("a token every %d ms, burst %d, step %d: got %t, want %t", every, burst, step, got, want)
			}
			if got {
				granted++
			} else {
				refused++
			}
		}
		if c, _ := l.state(); c.attempted != 60 || c.successful+c.rejected != 60 {
			t.Fatalf("counts %+v", c)
		}
	}
	if granted < 1000 || refused < 1000 {
		t.Errorf("the rounds show too little: %d granted, %d refused", granted, refused)
	}
}

func TestLimiterQueue(t *testing.T) {
	clock := newHandClock()
	l := newLimiter(clock, 10, 0.2, 2) // two at once, one every 100 ms, two wait
	for range 2 {
		if got := l.acquire(t.Context()); got != admitted {
			t.Fatalf("of the burst: %d", got)
		}
	}
	ended := make(chan admission, 3)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- l.acquire(t.Context()) }()
	clock.await(t, 1)
	go func() { ended <- l.acquire(ctx) }()
	clock.await(t, 2)
	if got := l.acquire(t.Context()); got != queueFull {
		t.Errorf("with a full queue: %d", got)
	}
	if c, tokens := l.state(); c.queued() != 2 || c.rejected != 1 || tokens != 0 {
		t.Errorf("counts %+v, %f tokens", c, tokens)
	}
	cancel()
	if got := <-ended; got != interrupted {
		t.Errorf("who left: %d", got)
	}
	clock.advance(99 * time.Millisecond)
	clock.await(t, 1)
	clock.advance(time.Millisecond)
	if got := <-ended; got != admitted {
		t.Errorf("who waited: %d", got)
	}
	clock.advance(100 * time.Millisecond) // the token that was given back is not there twice
	if c, tokens := l.state(); c.queued() != 0 || c.interrupted != 1 || c.successful != 3 || tokens < 0.99 || tokens > 1.01 {
		t.Errorf("at the end: %+v, %f tokens", c, tokens)
	}
}

func TestLimiterConfigure(t *testing.T) {
	for _, row := range []struct {
		reason      string
		take        int
		rate, burst float64
		want        float64
	}{
		{"a full bucket stays full up to the new burst", 0, 20, 1, 20},
		{"the tokens that are there stay", 6, 20, 1, 4},
		{"and grow no further than they were", 0, 100, 1, 10},
		{"an empty bucket stays empty", 10, 100, 1, 0},
	} {
		clock := newHandClock()
		l := newLimiter(clock, 10, 1, 0)
		if row.reason == "a full bucket stays full up to the new burst" {
			l = newLimiter(clock, 1e9, 1e300, 0) // as servers begin
		}
		for range row.take {
			l.try()
		}
		l.configure(row.rate, row.burst, 5)
		if _, tokens := l.state(); tokens != row.want {
			t.Errorf("%s: %f tokens, want %f", row.reason, tokens, row.want)
		}
		clock.advance(time.Hour)
		if _, tokens := l.state(); tokens != row.rate*row.burst {
			t.Errorf("%s: %f tokens in the end", row.reason, tokens)
		}
	}
	l := newLimiter(newHandClock(), 1, 0.001, 0) // a bucket that never holds a token
	if l.try() || l.acquire(t.Context()) != queueFull {
		t.Error("a request was admitted by a bucket without room for a token")
	}
}
