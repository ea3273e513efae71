package experiment

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
)

// operationRun is an operation that has started.
type operationRun struct {
	client   int
	begun    time.Duration
	state    retry.State
	attempts int
	holds    bool // a connection
	done     bool
}

// pool is the connection pool of a client: the number of connections in use, and the operations that wait for one.
type pool struct {
	used    int
	waiting fifo[*operationRun]
}

// simulation is one run with one policy.
type simulation struct {
	agenda
	config *Config
	policy Policy
	server *server
	pools  []pool         // by client
	tokens []retry.Tokens // by client: the level of its token bucket
	down   time.Duration  // the time at which the primary is available again
	life   int            // number of crashes
	times  *rand.Rand     // for start times and clients of operations
	jitter *rand.Rand
	log    recorder
}

// recorder records the events of a simulation.
type recorder interface {
	began(at time.Duration)
	sent(at time.Duration)
	rejected(at time.Duration)
	// bucket records the average level of token buckets at each step.
	bucket(tokens float64)
	// ended records the end of an operation: its start, success and number of attempts.
	ended(at, begun time.Duration, success bool, attempts int)
}

// address is the address of the server.
const address = "server:27017"

// labels are the labels of the overload error of a write from server 8.2.
func labels() []string {
	return []string{codes.SystemOverloadedError, codes.RetryableError, codes.RetryableWriteError}
}

// simulate runs the experiment with a policy until no events remain. It calls progress with the completed fraction.
func simulate(ctx context.Context, c *Config, p Policy, log recorder, progress func(float64)) error {
	s := &simulation{
		config: c, policy: p, server: newServer(c), pools: make([]pool, c.Clients), log: log,
		times:  rand.New(rand.NewPCG(uint64(c.Seed), 1)),
		jitter: rand.New(rand.NewPCG(uint64(c.Seed), 2)),
		tokens: make([]retry.Tokens, c.Clients),
	}
	s.planNext(0)
	for _, at := range c.outages() {
		s.plan(at, s.crash)
	}
	if b := p.rules.Bucket(); b != nil {
		s.tokens = slices.Repeat([]retry.Tokens{b.Capacity}, c.Clients)
		for at := time.Duration(0); at < c.Duration; at += step {
			s.plan(at, s.lookAtTokens)
		}
	}
	for n := 0; s.agenda.Len() > 0; n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(min(0.99, float64(s.now)/float64(c.Duration)))
		}
		s.agenda.next()
		if takes, ok := s.server.work(); ok {
			life := s.life
			s.plan(takes, func() {
				if life == s.life {
					s.reply()
				}
			})
		}
	}
	progress(1)
	return nil
}

// planNext plans the start of the next operation after a time. Independent clients
// form a Poisson process. It has no memory and restarts where the rate changes.
func (s *simulation) planNext(from time.Duration) {
	for _, end := range []time.Duration{s.config.spikeStart(), s.config.spikeEnd(), s.config.Duration} {
		if from >= end {
			continue
		}
		gap := time.Duration(s.times.ExpFloat64() / s.config.perSecond(from) * float64(time.Second))
		if from+gap < end {
			s.plan(from+gap-s.now, s.begin)
			return
		}
		from = end
	}
}

func (s *simulation) begin() {
	op := &operationRun{client: s.times.IntN(s.config.Clients), begun: s.now,
		state: retry.Start(s.policy.rules, s.policy.set)}
	s.log.began(s.now)
	s.plan(s.config.Timeout, func() { s.expire(op) })
	s.decide(op, retry.Input{Kind: retry.Begin})
	s.planNext(s.now)
}

// crash closes the connections of all requests. Clients detect it immediately.
func (s *simulation) crash() {
	s.life++
	s.down = s.now + restartDown
	for _, r := range s.server.crash() {
		s.fail(r, broken())
	}
}

// broken is the error of a closed connection.
func broken() retry.Failure {
	return retry.Failure{Kind: retry.Network, Labels: labels()[2:], Server: address}
}

func (s *simulation) lookAtTokens() {
	sum := retry.Tokens(0)
	for _, t := range s.tokens {
		sum += t
	}
	s.log.bucket(float64(sum) / float64(retry.Token) / float64(len(s.tokens)))
}

// reply sends the reply to the finished request.
func (s *simulation) reply() {
	r, v := s.server.finish(s.now)
	if v != nothing && s.config.unreachable(s.now) {
		s.plan(s.config.RoundTrip/2, func() {
			s.fail(r, retry.Failure{Kind: retry.Server, Code: codes.HostUnreachable, Labels: labels()[2:], Server: address})
		})
		return
	}
	switch v {
	case rejected:
		s.log.rejected(s.now)
	case nothing:
		return
	}
	s.plan(s.config.RoundTrip/2, func() {
		if v == served {
			s.answer(r, retry.Input{Kind: retry.Succeeded})
			return
		}
		s.fail(r, retry.Failure{Kind: retry.Server, Code: codes.IngressRequestRateLimitExceeded, Labels: labels(),
			BaseBackoff: s.config.BaseBackoff,
			Server:      address})
	})
}

// fail delivers an error to a client.
func (s *simulation) fail(r request, f retry.Failure) {
	if s.policy.always {
		f.Labels = labels()
	}
	s.answer(r, retry.Input{Kind: retry.Failed, Failure: f})
}

// answer delivers a reply to a client unless its attempt has ended.
func (s *simulation) answer(r request, in retry.Input) {
	if r.op.done || r.try != r.op.attempts || !r.op.holds {
		return
	}
	s.checkIn(r.op)
	if in.Kind == retry.Failed {
		in.Jitter = s.jitter.Float64()
	}
	s.decide(r.op, in)
}

// expire ends an operation at its deadline, like a socket timeout.
func (s *simulation) expire(op *operationRun) {
	if !op.done {
		s.end(op, false)
		s.checkIn(op)
	}
}

// checkOut sends an attempt once its client has a free connection.
func (s *simulation) checkOut(op *operationRun) {
	p := &s.pools[op.client]
	if p.used == s.config.Pool {
		p.waiting.push(op)
		return
	}
	p.used++
	op.holds = true
	op.attempts++
	s.log.sent(s.now)
	r := request{op, op.attempts}
	s.plan(s.config.RoundTrip/2, func() {
		if s.now < s.down {
			s.fail(r, broken())
			return
		}
		s.server.arrive(r)
	})
}

// checkIn passes an operation's connection to the next waiting operation. A connection
// with a pending reply would be closed and replaced. That makes no difference here.
func (s *simulation) checkIn(op *operationRun) {
	if !op.holds {
		return
	}
	op.holds = false
	p := &s.pools[op.client]
	p.used--
	for len(p.waiting) > 0 && p.used < s.config.Pool {
		if next, _ := p.waiting.pop(); !next.done {
			s.checkOut(next)
		}
	}
}

// decide executes the decisions of the retry core.
func (s *simulation) decide(op *operationRun, in retry.Input) {
	for {
		var d retry.Decision
		in.Left, in.Tokens = op.begun+s.config.Timeout-s.now, s.tokens[op.client]
		op.state, d = retry.Next(op.state, in)
		s.tokens[op.client] = d.Tokens
		switch d.Action {
		case retry.Select:
			if s.now < s.down { // server selection waits for a primary
				s.plan(s.down-s.now, func() {
					if !op.done {
						s.decide(op, selected())
					}
				})
				return
			}
			in = selected()
		case retry.Send:
			s.checkOut(op)
			return
		case retry.BackOff:
			s.plan(d.Delay, func() {
				if !op.done {
					s.decide(op, retry.Input{Kind: retry.BackedOff})
				}
			})
			return
		default:
			s.end(op, d.Action == retry.ReturnResult)
			return
		}
	}
}

// selected is the result of server selection.
func selected() retry.Input {
	return retry.Input{Kind: retry.Selected, Chosen: retry.Chosen{Address: address, Wire: 27, RetryableWrites: true}}
}

func (s *simulation) end(op *operationRun, success bool) {
	op.done = true
	s.log.ended(s.now, op.begun, success, op.attempts)
}
