package server

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// limiter is a token bucket with a queue, as the server's rate limiters are.
// A request takes a token. Without one it is rejected; or it takes one on
// credit and waits until the bucket would have had it, if the queue has room.
type limiter struct {
	mu      sync.Mutex
	rate    float64 // tokens per second
	burst   float64 // tokens at most
	balance float64 // tokens at the moment at; below zero: taken on credit
	at      time.Time
	depth   int64 // of the queue
	counts  limiterCounts
}

// limiterCounts are what serverStatus reports of a limiter.
type limiterCounts struct {
	attempted, successful, rejected, exempted int64
	added, removed, interrupted               int64 // of the queue
}

// newLimiter makes a limiter with a full bucket.
func newLimiter(rate, burstSeconds float64, depth int64) *limiter {
	return &limiter{rate: rate, burst: rate * burstSeconds, balance: rate * burstSeconds, at: time.Now(), depth: depth}
}

// configure changes rate, burst and queue. Tokens that are there stay, as far
// as the new burst has room; what was taken on credit is forgotten.
func (l *limiter) configure(rate, burstSeconds float64, depth int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rate != l.rate || rate*burstSeconds != l.burst {
		l.refill()
		l.rate, l.burst = rate, rate*burstSeconds
		l.balance = min(l.burst, max(0, l.balance))
	}
	l.depth = depth
}

func (l *limiter) refill() {
	now := time.Now()
	l.balance = min(l.burst, l.balance+l.rate*now.Sub(l.at).Seconds())
	l.at = now
}

// exempt counts a request that needs no token.
func (l *limiter) exempt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.exempted++
}

// try takes a token if there is one, without a look at the queue.
func (l *limiter) try() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill()
	l.counts.attempted++
	if l.balance < 1 {
		l.counts.rejected++
		return false
	}
	l.balance--
	l.counts.successful++
	return true
}

// admission is how acquire ended.
type admission uint8

const (
	admitted admission = iota
	queueFull
	interrupted
)

// acquire takes a token, and waits for it if the queue has room. The server
// counts waits in whole milliseconds, and does not wait for less.
func (l *limiter) acquire(ctx context.Context) admission {
	wait, ok := l.borrow()
	if !ok {
		return queueFull
	}
	if wait == 0 {
		return admitted
	}
	waited := sleep(ctx, wait)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.removed++
	if !waited {
		l.counts.interrupted++
		l.balance++ // what was not used is given back
		return interrupted
	}
	l.counts.successful++
	return admitted
}

func (l *limiter) borrow() (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill()
	l.counts.attempted++
	if l.balance < 1 {
		wait = time.Duration((1 - l.balance) / l.rate * float64(time.Second)).Truncate(time.Millisecond)
	}
	if wait > 0 && l.counts.added-l.counts.removed >= l.depth {
		l.counts.rejected++
		return 0, false
	}
	l.balance--
	if wait > 0 {
		l.counts.added++
	} else {
		l.counts.successful++
	}
	return wait, true
}

// state is a copy of the counts, and the tokens that are there.
func (l *limiter) state() (limiterCounts, float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill()
	return l.counts, max(0, l.balance)
}

// queued is how many wait.
func (c limiterCounts) queued() int64 { return c.added - c.removed }

// doc is the limiter's part of serverStatus; queue says whether it has one.
func (l *limiter) doc(queue bool) bson.D {
	c, tokens := l.state()
	out := bson.D{}
	if queue {
		out = append(out,
			bson.E{Key: "addedToQueue", Value: c.added},
			bson.E{Key: "removedFromQueue", Value: c.removed},
			bson.E{Key: "interruptedInQueue", Value: c.interrupted})
	}
	const most = float64(1 << 63) // what reads the status may not know infinity
	return append(out,
		bson.E{Key: "rejectedAdmissions", Value: c.rejected},
		bson.E{Key: "exemptedAdmissions", Value: c.exempted},
		bson.E{Key: "successfulAdmissions", Value: c.successful},
		bson.E{Key: "attemptedAdmissions", Value: c.attempted},
		bson.E{Key: "totalAvailableTokens", Value: min(most, tokens)})
}
