package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// object is an object of the JSON report, which docs/application/experiments.md describes: times
// in milliseconds, rates per second, fractions of one.
type object map[string]any

// JSON writes the complete report.
func (r *Report) JSON(w io.Writer) error {
	var runs []object
	for _, run := range r.Runs {
		phases := object{}
		for i, name := range []string{"before", "spike", "after"} {
			phases[name] = run.Phases[i].object()
		}
		runs = append(runs, object{
			"policy": run.Policy.Name, "description": run.Policy.What, "retryPolicy": run.Policy.rules.Name,
			"phases": phases, "series": run.Series, "silenceMS": ms(run.Silence),
			"recoveryMS": only(run.Recovered, run.Recovery),
		})
	}
	data, err := json.MarshalIndent(object{"experiment": "overload", "config": r.Config.object(), "stepMS": ms(step),
		"runs": runs}, "", " ")
	if err != nil {
		return fmt.Errorf("writing the experiment as JSON: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func (c *Config) object() object {
	return object{
		"clients": c.Clients, "capacityPerSec": c.Capacity, "loadPercent": c.Load, "spikePercent": c.Spike,
		"durationMS": ms(c.Duration), "spikeFromMS": ms(c.spikeStart()), "spikeToMS": ms(c.spikeEnd()),
		"timeoutMS": ms(c.Timeout), "maxPoolSize": c.Pool, "roundTripMS": ms(c.RoundTrip),
		"rejectionCostPercent": c.Rejection,
		"queue":                c.Queue, "ingressRatePerSec": c.Rate, "ingressBurst": c.Burst,
		"baseBackoffMS": ms(c.BaseBackoff),
		"fault":         c.Fault, "seed": c.Seed,
	}
}

func (p *Phase) object() object {
	known := p.Succeeded > 0
	return object{
		"operations": p.Operations, "succeeded": p.Succeeded, "failed": p.Failed, "attempts": p.Attempts,
		"attemptsPerOperation": p.PerOperation(), "goodputPerSec": p.Goodput,
		"latencyP50MS": only(known, p.P50), "latencyP95MS": only(known, p.P95), "latencyP99MS": only(known, p.P99),
	}
}

// only returns a time in milliseconds, or null if unknown.
func only(known bool, d time.Duration) any {
	if known {
		return ms(d)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
