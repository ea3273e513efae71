package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// record is the JSON form: times in milliseconds, rates per second, parts of
// one. docs/experiments.md describes it.
type record struct {
	Experiment string      `json:"experiment"`
	Config     configJSON  `json:"config"`
	StepMS     float64     `json:"stepMS"`
	Runs       []runRecord `json:"runs"`
}

type configJSON struct {
	Clients       int     `json:"clients"`
	Capacity      int     `json:"capacityPerSec"`
	Load          int     `json:"loadPercent"`
	Spike         int     `json:"spikePercent"`
	DurationMS    float64 `json:"durationMS"`
	SpikeFromMS   float64 `json:"spikeFromMS"`
	SpikeToMS     float64 `json:"spikeToMS"`
	TimeoutMS     float64 `json:"timeoutMS"`
	Pool          int     `json:"maxPoolSize"`
	RoundTripMS   float64 `json:"roundTripMS"`
	Rejection     int     `json:"rejectionCostPercent"`
	Queue         int     `json:"queue"`
	Rate          int     `json:"ingressRatePerSec"`
	Burst         int     `json:"ingressBurst"`
	BaseBackoffMS float64 `json:"baseBackoffMS"`
	Seed          int64   `json:"seed"`
}

type runRecord struct {
	Policy     string                 `json:"policy"`
	What       string                 `json:"description"`
	Rules      string                 `json:"retryPolicy"`
	Phases     map[string]phaseRecord `json:"phases"`
	RecoveryMS *float64               `json:"recoveryMS"` // null: not recovered
	SilenceMS  float64                `json:"silenceMS"`
	Series     Series                 `json:"series"`
}

type phaseRecord struct {
	Phase
	PerOperation float64 `json:"attemptsPerOperation"`
	Goodput      float64 `json:"goodputPerSec"`
	// null if nothing succeeded
	P50 *float64 `json:"latencyP50MS"`
	P95 *float64 `json:"latencyP95MS"`
	P99 *float64 `json:"latencyP99MS"`
}

// JSON writes the report with everything that was measured.
func (r *Report) JSON(w io.Writer) error {
	c := &r.Config
	out := record{Experiment: "overload", StepMS: ms(step), Config: configJSON{
		Clients: c.Clients, Capacity: c.Capacity, Load: c.Load, Spike: c.Spike, DurationMS: ms(c.Duration),
		SpikeFromMS: ms(c.spikeStart()), SpikeToMS: ms(c.spikeEnd()), TimeoutMS: ms(c.Timeout), Pool: c.Pool, RoundTripMS: ms(c.RoundTrip),
		Rejection: c.Rejection, Queue: c.Queue, Rate: c.Rate, Burst: c.Burst, BaseBackoffMS: ms(c.BaseBackoff), Seed: c.Seed,
	}}
	for _, run := range r.Runs {
		one := runRecord{Policy: run.Policy.Name, What: run.Policy.What, Rules: run.Policy.rules.Name, SilenceMS: ms(run.Silence),
			Phases: map[string]phaseRecord{}, Series: run.Series}
		if run.Recovered {
			back := ms(run.Recovery)
			one.RecoveryMS = &back
		}
		for i, name := range []string{"before", "spike", "after"} {
			one.Phases[name] = run.Phases[i].record()
		}
		out.Runs = append(out.Runs, one)
	}
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return fmt.Errorf("writing the experiment as JSON: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func (p Phase) record() phaseRecord {
	out := phaseRecord{Phase: p, PerOperation: p.PerOperation(), Goodput: p.Goodput}
	if p.Succeeded > 0 {
		p50, p95, p99 := ms(p.P50), ms(p.P95), ms(p.P99)
		out.P50, out.P95, out.P99 = &p50, &p95, &p99
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
