package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config describes an overload experiment. Start from Defaults.
type Config struct {
	// Clients is the number of clients. Each of them begins operations equally
	// often, at random times that are independent of one another.
	Clients int
	// Capacity is how many operations the server serves in a second, if it
	// does nothing else.
	Capacity int
	// Load is the load before and after the spike, Spike that of the spike:
	// operations begun per second, in percent of Capacity.
	Load, Spike int
	// Duration is how long operations are begun. The spike is the second sixth of
	// it; the experiment ends with the last operation.
	Duration time.Duration
	// Timeout is the timeoutMS of every operation.
	Timeout time.Duration
	// Pool is maxPoolSize: how many requests of a client can be pending; further
	// ones wait.
	Pool int
	// RoundTrip is the time that a request and its reply spend on the network.
	RoundTrip time.Duration
	// Rejection is what it costs the server to judge a request, in percent of
	// what serving it costs. Rejected requests cost that.
	Rejection int
	// Queue is how many admitted requests can wait; further ones are rejected.
	Queue int
	// Rate and Burst are the ingress request rate limiter: requests admitted
	// per second, and how many at once. Rate 0 switches it off.
	Rate, Burst int
	// BaseBackoff is the baseBackoffMS of overload errors, 0 for none.
	BaseBackoff time.Duration
	// Fault is a failure that begins with the spike, "" for none. Set Spike to Load to see it without overload.
	Fault Fault
	// Policies are how clients handle errors, each with a run of its own.
	Policies []Policy
	// Seed of random numbers: when operations begin, and the jitter of backoffs.
	// The operations of all policies begin at the same times.
	Seed int64
}

// Defaults is the experiment that the documentation shows: 1,000 clients bring
// a server of 1,000 operations a second from 80 to 300 percent and back.
func Defaults() Config {
	return Config{
		Clients: 1000, Capacity: 1000, Load: 80, Spike: 300,
		Duration: time.Minute, Timeout: 5 * time.Second, Pool: 100, RoundTrip: 2 * time.Millisecond,
		Rejection: 10, Queue: 500, Rate: 1000, Burst: 100,
		Policies: Policies(), Seed: 1,
	}
}

// Scaled sets the capacity and, in proportion, what a server of that capacity
// has: half a second's worth of queue, a limiter that admits what can be
// served, a tenth of a second's worth at once.
func (c Config) Scaled(capacity int) Config {
	c.Capacity, c.Queue, c.Rate, c.Burst = capacity, max(1, capacity/2), capacity, max(1, capacity/10)
	return c
}

// Fault is a failure that is not overload.
type Fault string

// The faults.
const (
	// Unreachable: the server, a mongos, cannot reach its shard during the spike, and answers every
	// request with HostUnreachable.
	Unreachable Fault = "unreachable"
	// Restarts: a rolling restart begins with the spike. Each restart leaves the set without a primary for
	// restartDown; the next one follows after restartUp.
	Restarts Fault = "restarts"
)

// How a rolling restart goes.
const (
	restarts    = 3
	restartDown = 300 * time.Millisecond
	restartUp   = 150 * time.Millisecond
)

// outages lists the times at which the primary goes down.
func (c *Config) outages() (from []time.Duration) {
	if c.Fault != Restarts {
		return nil
	}
	for i := range restarts {
		from = append(from, c.spikeStart()+time.Duration(i)*(restartDown+restartUp))
	}
	return from
}

// unreachable reports whether every request fails at a time.
func (c *Config) unreachable(at time.Duration) bool {
	return c.Fault == Unreachable && at >= c.spikeStart() && at < c.spikeEnd()
}

// Bounds of a configuration, so that a mistaken one does not run for days.
const (
	maxClients  = 1_000_000
	maxCapacity = 1_000_000
	maxPercent  = 10_000
	maxDuration = time.Hour
)

// Check refuses values out of bounds.
func (c *Config) Check() error {
	limiter, policies := error(nil), error(nil)
	if len(c.Policies) == 0 {
		policies = errors.New("the experiment needs a policy")
	}
	if c.Rate > 0 && c.Burst == 0 {
		limiter = errors.New("a limiter with burst 0 admits nothing")
	}
	return cmp.Or(
		within("clients", c.Clients, 1, maxClients),
		within("capacity", c.Capacity, 1, maxCapacity),
		within("load", c.Load, 1, maxPercent),
		within("spike", c.Spike, 1, maxPercent),
		within("rejection", c.Rejection, 0, 100),
		within("pool", c.Pool, 1, maxClients),
		within("queue", c.Queue, 1, maxCapacity),
		within("rate", c.Rate, 0, maxCapacity),
		within("burst", c.Burst, 0, maxCapacity),
		within("duration", c.Duration, 6*time.Second, maxDuration),
		within("timeout", c.Timeout, time.Millisecond, maxDuration),
		within("round trip", c.RoundTrip, 0, maxDuration),
		within("base backoff", c.BaseBackoff, 0, maxDuration),
		policies, limiter)
}

func within[T int | time.Duration](what string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %v: it must be %v to %v", what, value, least, most)
	}
	return nil
}

// spikeStart and spikeEnd bound the spike.
func (c *Config) spikeStart() time.Duration { return c.Duration / 6 }
func (c *Config) spikeEnd() time.Duration   { return c.Duration / 3 }

// perSecond is how many operations begin in a second at a time.
func (c *Config) perSecond(at time.Duration) float64 {
	percent := c.Load
	if at >= c.spikeStart() && at < c.spikeEnd() {
		percent = c.Spike
	}
	return float64(c.Capacity) * float64(percent) / 100
}
