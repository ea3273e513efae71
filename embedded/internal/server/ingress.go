package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

type ingress struct {
	params                *parameters
	connections, requests limiter
}

// newIngress returns limiters with full buckets.
func newIngress(p *parameters) *ingress {
	i := &ingress{params: p}
	i.reload()
	i.connections.balance, i.requests.balance = i.connections.burst, i.requests.burst
	return i
}

func (i *ingress) reload() {
	p := i.params
	i.connections.configure(p.number(connectionRate), p.number(connectionBurst), int64(p.number(connectionQueue)))
	i.requests.configure(p.number(requestRate), p.number(requestBurst), int64(p.number(requestQueue)))
}

// admit applies the request rate limiter, before the request is parsed. With access control, requests before
// authentication are exempt. Otherwise the content does not matter: hello, setParameter and endSessions are limited
// like other commands. Further replies of a stream are not limited.
func (x *exchange) admit() error {
	k := x.conn
	i := k.server.ingress
	if !i.params.isTrue(requestLimit) {
		return nil
	}
	exemptions, _ := i.params.value(requestAppExemptions).(bson.Raw)
	prefixes := value.Strings(exemptions.Lookup("appNames"))
	exempt := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(k.appName, prefix) })
	if exempt || k.server.process.AccessControl && k.user == nil {
		i.requests.mu.Lock()
		i.requests.counts.Exempted++
		i.requests.mu.Unlock()
		return nil
	}
	if err := i.requests.acquire(k.ctx); !errors.Is(err, errRejected) {
		return err
	}
	x.out.Labels = []string{codes.SystemOverloadedError}
	if !x.view.Has.LimiterLabels || i.params.isTrue(requestRetries) {
		x.out.Labels = append(x.out.Labels, codes.RetryableError)
	}
	if x.view.Has.LimiterLabels {
		x.out.Labels = append(x.out.Labels, codes.NoWritesPerformed)
	}
	what := "rate"
	if i.params.number(requestQueue) > 0 {
		what = "maximum queue depth"
	}
	return fault.Errorf(fault.IngressRequestRateLimitExceeded,
		"Rate limiter 'ingressRequestRateLimiter' %s exceeded", what)
}

// limiter is a token bucket with a queue, like the server's rate limiters. A request takes a token. If no token is
// available, the request is rejected, or, if the queue has room, takes one on credit and waits until it is available.
type limiter struct {
	mu      sync.Mutex
	rate    float64 // tokens per second
	burst   float64 // tokens at most
	balance float64 // tokens at time at; negative: taken on credit
	at      time.Time
	depth   int64 // of the queue
	counts  limiterCounts
}

// limiterCounts is the section of a limiter in serverStatus.
type limiterCounts struct {
	Added       int64   `bson:"addedToQueue"`
	Removed     int64   `bson:"removedFromQueue"`
	Interrupted int64   `bson:"interruptedInQueue"`
	Rejected    int64   `bson:"rejectedAdmissions"`
	Exempted    int64   `bson:"exemptedAdmissions"`
	Successful  int64   `bson:"successfulAdmissions"`
	Attempted   int64   `bson:"attemptedAdmissions"`
	Tokens      float64 `bson:"totalAvailableTokens"`
}

// configure changes rate, burst and queue. It keeps available tokens up to the new burst, and cancels credit.
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

var errRejected = errors.New("rejected by a rate limiter")

// acquire takes a token, and waits for it if the queue has room. Like the server, it rounds waits down to milliseconds.
// It fails with errRejected, or with ErrClose if the wait was interrupted.
func (l *limiter) acquire(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill()
	l.counts.Attempted++
	var wait time.Duration
	if l.balance < 1 {
		missing := time.Duration((1 - l.balance) / l.rate * float64(time.Second))
		wait = missing.Round(time.Microsecond).Truncate(time.Millisecond)
	}
	if wait > 0 && l.counts.Added-l.counts.Removed >= l.depth {
		l.counts.Rejected++
		return errRejected
	}
	l.balance--
	if wait > 0 {
		l.counts.Added++
		l.mu.Unlock()
		waited := sleep(ctx, wait, nil)
		l.mu.Lock()
		l.counts.Removed++
		if !waited {
			l.counts.Interrupted++
			l.balance++ // returns the unused token
			return failpoint.ErrClose
		}
	}
	l.counts.Successful++
	return nil
}

// status returns the counts and the available tokens.
func (l *limiter) status() limiterCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill()
	const limit = float64(1 << 63) // clients may not support infinity
	l.counts.Tokens = min(limit, max(0, l.balance))
	return l.counts
}

// add adds the counts of the limiters to serverStatus and its section connections.
func (i *ingress) add(status, connections bson.D) (bson.D, bson.D) {
	c := i.connections.status()
	return value.Append(status, "network", value.Doc("ingressRequestRateLimiter", i.requests.status()),
			"queues", value.Doc("ingressSessionEstablishment", c)),
		value.Append(connections, "queuedForEstablishment", c.Added-c.Removed,
			"establishmentRateLimit", value.Doc("rejected", c.Rejected, "exempted", c.Exempted,
				"interruptedDueToClientDisconnect", c.Interrupted))
}
