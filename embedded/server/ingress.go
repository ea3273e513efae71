package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// ingress are the rate limiters at a server's front door.
type ingress struct {
	params                *parameters
	connections, requests limiter
}

// newIngress makes both limiters, with full buckets.
func newIngress(p *parameters) *ingress {
	i := &ingress{params: p}
	i.reload()
	i.connections.balance, i.requests.balance = i.connections.burst, i.requests.burst
	return i
}

// reload takes over what setParameter has changed.
func (i *ingress) reload() {
	p := i.params
	i.connections.configure(p.number(connectionRate), p.number(connectionBurst), int64(p.number(connectionQueue)))
	i.requests.configure(p.number(requestRate), p.number(requestBurst), int64(p.number(requestQueue)))
}

// establish waits until a new connection is admitted. False: it is rejected,
// and is to be closed without a word, before TLS and before hello.
func (k *conn) establish() bool {
	i := k.server.ingress
	return !i.params.isTrue(connectionLimit) || i.connections.acquire(k.ctx) == nil
}

// admit lets the request rate limiter judge a request before anything of it is
// read. Requests of connections that have not authenticated are exempt, unless
// there is no access control: then no request is exempt, not even hello. Beyond that the
// content of a request does not matter: setParameter and endSessions are
// rejected like any other. The further replies of a stream are not requests.
func (x *exchange) admit() error {
	k := x.conn
	i := k.server.ingress
	if !i.params.isTrue(requestLimit) {
		return nil
	}
	if k.server.process.AccessControl && k.user == nil || i.exempts(k.appName) {
		i.requests.exempt()
		return nil
	}
	if err := i.requests.acquire(k.ctx); !errors.Is(err, errRejected) {
		return err
	}
	x.extras.labels = []string{"SystemOverloadedError"}
	if !x.has(limiterLabels) || i.params.isTrue(requestRetries) {
		x.extras.labels = append(x.extras.labels, "RetryableError")
	}
	if x.has(limiterLabels) {
		x.extras.labels = append(x.extras.labels, "NoWritesPerformed")
	}
	what := "rate"
	if i.params.number(requestQueue) > 0 {
		what = "maximum queue depth"
	}
	return command.Errorf(command.CodeIngressRequestRateLimitExceeded, "Rate limiter 'ingressRequestRateLimiter' %s exceeded", what)
}

// exempts reports whether an application's name begins with one that is exempt.
func (i *ingress) exempts(app string) bool {
	doc, _ := i.params.value(requestAppExemptions).(bson.Raw)
	return slices.ContainsFunc(command.Texts(doc.Lookup("appNames")), func(name string) bool { return strings.HasPrefix(app, name) })
}

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
	Added       int64   `bson:"addedToQueue"`
	Removed     int64   `bson:"removedFromQueue"`
	Interrupted int64   `bson:"interruptedInQueue"`
	Rejected    int64   `bson:"rejectedAdmissions"`
	Exempted    int64   `bson:"exemptedAdmissions"`
	Successful  int64   `bson:"successfulAdmissions"`
	Attempted   int64   `bson:"attemptedAdmissions"`
	Tokens      float64 `bson:"totalAvailableTokens"`
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
	l.counts.Exempted++
}

// errRejected reports that a limiter has neither a token nor room in its queue.
var errRejected = errors.New("rejected by a rate limiter")

// acquire takes a token, and waits for it if the queue has room: the server counts
// waits in whole milliseconds, and does not wait for less. It fails with errRejected, or
// with ErrClose if the wait was interrupted.
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
			l.balance++ // what was not used is given back
			return command.ErrClose
		}
	}
	l.counts.Successful++
	return nil
}

// status is a copy of the counts, with the tokens that are there.
func (l *limiter) status() limiterCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill()
	const most = float64(1 << 63) // what reads the status may not know infinity
	l.counts.Tokens = min(most, max(0, l.balance))
	return l.counts
}

// add adds to serverStatus what the limiters have counted: sections of their own, and fields of connections.
func (i *ingress) add(status, connections bson.D) (bson.D, bson.D) {
	c := i.connections.status()
	return append(status,
			bson.E{Key: "network", Value: bson.D{{Key: "ingressRequestRateLimiter", Value: i.requests.status()}}},
			bson.E{Key: "queues", Value: bson.D{{Key: "ingressSessionEstablishment", Value: c}}}),
		append(connections,
			bson.E{Key: "queuedForEstablishment", Value: c.Added - c.Removed},
			bson.E{Key: "establishmentRateLimit", Value: bson.D{
				{Key: "rejected", Value: c.Rejected},
				{Key: "exempted", Value: c.Exempted},
				{Key: "interruptedDueToClientDisconnect", Value: c.Interrupted},
			}})
}
