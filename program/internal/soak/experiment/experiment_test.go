// Package experiment_test runs the overload experiment at its full length.
package experiment_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/experiment"
)

// docs/application/experiments.md shows the current results of its experiments and questions.
func TestPage(t *testing.T) {
	page := testkit.Read(t, filepath.Join(testkit.Root(t), "docs", "application", "experiments.md"))
	long, short := experiment.Defaults(), experiment.Defaults()
	short.Duration, short.Spike = 6*time.Second, 130
	for _, c := range []experiment.Config{long, short} {
		r, err := experiment.Overload(t.Context(), c, nil)
		testkit.Check(t, err)
		var text strings.Builder
		testkit.Check(t, r.Text(&text))
		table, policies, _ := strings.Cut(text.String(), "\n\nnone ")
		if !strings.Contains(page, table) || !strings.Contains(page, policies) {
			t.Errorf("docs/application/experiments.md is out of date: it does not contain\n%s", &text)
		}
	}
	for _, q := range experiment.Questions() {
		c := experiment.Defaults()
		q.Set(&c)
		r, err := experiment.Overload(t.Context(), c, nil)
		testkit.Check(t, err)
		var text strings.Builder
		testkit.Check(t, r.Text(&text))
		if !strings.Contains(page, text.String()) {
			t.Errorf("docs/application/experiments.md is out of date: it does not contain the answer to %s\n%s", q.Name, &text)
		}
	}
}

// With any seed, unbounded retries collapse the server, and all other policies let it
// recover. Each phase has few operations, so the bounds of goodput relative to the
// offered load are wide: its standard deviation is below 4 percent.
func TestCollapse(t *testing.T) {
	first := testkit.Seed(t)
	for seed := range int64(20) {
		c := experiment.Defaults().Scaled(200)
		c.Clients, c.Duration, c.Seed = 50, 24*time.Second, int64(first>>2)+seed
		offered := float64(c.Capacity*c.Load) / 100
		r, err := experiment.Overload(t.Context(), c, nil)
		testkit.Check(t, err)
		for _, run := range r.Runs {
			before, end := run.Phases[0].Goodput/offered, mean(run.Series.Goodput[len(run.Series.Goodput)-32:])/offered // of 8 s
			if collapsed := end < 0.5; before < 0.75 || collapsed != (run.Policy.Name == "naive") || !collapsed && end < 0.75 {
				t.Errorf("seed %d: %s: goodput %.2f of the load before the spike, %.2f at the end", c.Seed, run.Policy.Name,
					before, end)
			}
		}
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
