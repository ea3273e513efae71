package experiment

import (
	"context"
	"slices"
	"time"
)

// Report is the result of an experiment.
type Report struct {
	Config Config
	Runs   []Run
}

// Run is the result of one policy.
type Run struct {
	Policy Policy
	// Phases are before, during and after the spike. Operations belong to the phase in which they started.
	Phases [3]Phase
	// Series has a value for each step of the experiment.
	Series Series
	// Recovery is the time from the end of the spike until goodput recovers: at least 95 percent of that before the
	// spike, in the next second and in all the remaining time. Its resolution is a step.
	Recovery time.Duration
	// Recovered is false if goodput does not recover before the end.
	Recovered bool
	// Silence is the number of whole seconds without a success.
	Silence time.Duration
}

// Phase is the result of the operations that started in a phase.
type Phase struct {
	Operations int
	Succeeded  int
	Failed     int
	Attempts   int
	// Goodput is the number of successes per second that arrived in the phase (Client Backpressure, "Goodput").
	Goodput float64
	// Percentiles of the latencies of successful operations.
	P50, P95, P99 time.Duration
}

// PerOperation is the number of attempts per operation.
func (p Phase) PerOperation() float64 { return float64(p.Attempts) / float64(max(1, p.Operations)) }

// FailedPart is the fraction of operations that failed, 0 to 1.
func (p Phase) FailedPart() float64 { return float64(p.Failed) / float64(max(1, p.Operations)) }

// Series are rates per second over time.
type Series struct {
	Begun    []float64 `json:"begunPerSec"`
	Attempts []float64 `json:"attemptsPerSec"`
	Rejected []float64 `json:"rejectedPerSec"`
	Goodput  []float64 `json:"goodputPerSec"`
	// Tokens is the average level of the token buckets, nil without buckets.
	Tokens []float64 `json:"tokensPerClient,omitempty"`
}

// step is the resolution of series, and window the number of steps in a second.
const (
	step   = 250 * time.Millisecond
	window = int(time.Second / step)
)

// recovered is the fraction of the goodput before the spike that counts as recovered.
const recovered = 0.95

// Overload runs the experiment with each policy in turn. progress, which may be nil, receives the policy and the
// completed fraction of its run, 0 to 1. The error is about the configuration, or from ctx.
func Overload(ctx context.Context, c Config, progress func(policy string, part float64)) (*Report, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(string, float64) {}
	}
	report := &Report{Config: c}
	for _, p := range c.Policies {
		m := newMeasure(&c)
		if err := simulate(ctx, &c, p, m, func(part float64) { progress(p.Name, part) }); err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, m.run(p))
	}
	return report, nil
}

// measure is a recorder for one run.
type measure struct {
	config    *Config
	phases    [3]Phase
	results   [3]int // successes that arrived in a phase
	latencies [3][]time.Duration
	series    Series
}

func newMeasure(c *Config) *measure {
	empty := func() []float64 { return make([]float64, (c.Duration+step-1)/step) }
	return &measure{config: c, series: Series{Begun: empty(), Attempts: empty(), Rejected: empty(), Goodput: empty()}}
}

// count adds one to the step of a time, as a rate per second. It ignores events after the last step.
func count(series []float64, at time.Duration) {
	if i := int(at / step); i < len(series) {
		series[i] += 1 / step.Seconds()
	}
}

func (m *measure) began(at time.Duration) {
	count(m.series.Begun, at)
	m.phases[m.config.phase(at)].Operations++
}

func (m *measure) sent(at time.Duration)     { count(m.series.Attempts, at) }
func (m *measure) rejected(at time.Duration) { count(m.series.Rejected, at) }
func (m *measure) bucket(tokens float64)     { m.series.Tokens = append(m.series.Tokens, tokens) }

func (m *measure) ended(at, begun time.Duration, success bool, attempts int) {
	i := m.config.phase(begun)
	p := &m.phases[i]
	p.Attempts += attempts
	if !success {
		p.Failed++
		return
	}
	p.Succeeded++
	m.latencies[i] = append(m.latencies[i], at-begun)
	count(m.series.Goodput, at)
	if at < m.config.Duration {
		m.results[m.config.phase(at)]++
	}
}

// run returns the result.
func (m *measure) run(p Policy) Run {
	r := Run{Policy: p, Phases: m.phases, Series: m.series}
	lengths := [3]time.Duration{m.config.spikeStart(), m.config.spikeEnd() - m.config.spikeStart(),
		m.config.Duration - m.config.spikeEnd()}
	for i := range r.Phases {
		ph := &r.Phases[i]
		ph.Goodput = float64(m.results[i]) / lengths[i].Seconds()
		slices.Sort(m.latencies[i])
		ph.P50, ph.P95, ph.P99 = percentile(m.latencies[i], 50), percentile(m.latencies[i],
			95), percentile(m.latencies[i], 99)
	}
	r.Recovery, r.Recovered = recovery(r.Series.Goodput, m.config.spikeEnd(), r.Phases[0].Goodput)
	r.Silence = silence(m.series.Goodput)
	return r
}

// percentile is the nearest-rank percentile of sorted values, 0 without values.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// recovery returns the time from the end of the spike until goodput recovers.
func recovery(goodput []float64, end time.Duration, before float64) (time.Duration, bool) {
	from := int((end + step - 1) / step)
	for i := from; i+window <= len(goodput); i++ {
		if mean(goodput[i:i+window]) >= recovered*before && mean(goodput[i:]) >= recovered*before {
			return time.Duration(i-from) * step, true
		}
	}
	return 0, false
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// silence counts the whole seconds without a success.
func silence(goodput []float64) (d time.Duration) {
	for i := 0; i+window <= len(goodput); i += window {
		if slices.Max(goodput[i:i+window]) == 0 {
			d += time.Second
		}
	}
	return d
}
