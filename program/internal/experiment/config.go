package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config describes an overload experiment. Start from Defaults.
type Config struct {
	// Clients is the number of clients. All start operations at the same average rate, at independent random times.
	Clients int
	// Capacity is the number of operations per second that the server can serve.
	Capacity int
	// Load is the load before and after the spike, Spike the load in the spike:
	// operations started per second, in percent of Capacity.
	Load, Spike int
	// Duration is the time in which operations start. The spike is its second sixth.
	// The experiment ends with the last operation.
	Duration time.Duration
	// Timeout is the timeoutMS of every operation.
	Timeout time.Duration
	// Pool is maxPoolSize, the number of concurrent requests of a client.
	Pool int
	// RoundTrip is the network time of a request and its reply.
	RoundTrip time.Duration
	// Rejection is the cost of judging a request, also a rejected one, in percent of the cost of serving it.
	Rejection int
	// Queue is the number of admitted requests that can wait.
	Queue int
	// Rate and Burst configure the ingress request rate limiter: requests admitted per
	// second, and at once. Rate 0 disables it.
	Rate, Burst int
	// BaseBackoff is the baseBackoffMS of overload errors, 0 for none.
	BaseBackoff time.Duration
	// Fault is a failure that begins with the spike, "" for none. Set Spike to Load for a failure without overload.
	Fault Fault
	// Policies are the policies to compare. Each has a separate run.
	Policies []Policy
	// Seed is the seed of the start times of operations and of jitter. The times are the same for all policies.
	Seed int64
}

// Defaults returns the experiment of the documentation: 1,000 clients raise the load of
// a server with a capacity of 1,000 operations per second from 80 to 300 percent.
func Defaults() Config {
	return Config{
		Clients: 1000, Capacity: 1000, Load: 80, Spike: 300,
		Duration: time.Minute, Timeout: 5 * time.Second, Pool: 100, RoundTrip: 2 * time.Millisecond,
		Rejection: 10, Queue: 500, Rate: 1000, Burst: 100,
		Policies: Policies(), Seed: 1,
	}
}

// Scaled sets the capacity and, in proportion, the queue (half a second) and the limiter
// (the capacity, with a burst of a tenth of a second).
func (c Config) Scaled(capacity int) Config {
	c.Capacity, c.Queue, c.Rate, c.Burst = capacity, max(1, capacity/2), capacity, max(1, capacity/10)
	return c
}

// Fault is a failure that is not overload.
type Fault string

// The faults.
const (
	// Unreachable: the server, a mongos, cannot reach its shard during the spike and
	// returns HostUnreachable for every request.
	Unreachable Fault = "unreachable"
	// Restarts: a rolling restart begins with the spike. The set has no primary for
	// restartDown, and the next restart follows after restartUp.
	Restarts Fault = "restarts"
)

// The rolling restart.
const (
	restarts    = 3
	restartDown = 300 * time.Millisecond
	restartUp   = 150 * time.Millisecond
)

// outages returns the times at which the primary stops.
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
	return c.Fault == Unreachable && c.phase(at) == 1
}

// Bounds of a configuration, so that an incorrect one does not run for days.
const (
	maxClients  = 1_000_000
	maxCapacity = 1_000_000
	maxPercent  = 10_000
	maxDuration = time.Hour
)

// Check returns an error for values out of bounds.
func (c *Config) Check() error {
	switch {
	case len(c.Policies) == 0:
		return errors.New("the experiment needs a policy")
	case c.Rate > 0 && c.Burst == 0:
		return errors.New("a limiter with burst 0 admits nothing")
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
		within("base backoff", c.BaseBackoff, 0, maxDuration))
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

// phase returns 0, 1 or 2 for a time before, in or after the spike.
func (c *Config) phase(at time.Duration) int {
	switch {
	case at < c.spikeStart():
		return 0
	case at < c.spikeEnd():
		return 1
	}
	return 2
}

// perSecond is the rate at which operations start at a time.
func (c *Config) perSecond(at time.Duration) float64 {
	percent := c.Load
	if c.phase(at) == 1 {
		percent = c.Spike
	}
	return float64(c.Capacity) * float64(percent) / 100
}
