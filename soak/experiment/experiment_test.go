// Package experiment_test runs the overload experiment at its full length.
package experiment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/experiment"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Both experiments of docs/experiments.md give what the page shows.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "experiments.md"))
	if err != nil {
		t.Fatal(err)
	}
	long, short := experiment.Defaults(), experiment.Defaults()
	short.Duration, short.Spike = 6*time.Second, 130
	for _, c := range []experiment.Config{long, short} {
		r, err := experiment.Overload(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		table, policies, _ := strings.Cut(text.String(), "\n\nnone ")
		if !strings.Contains(string(page), table) || !strings.Contains(string(page), policies) {
			t.Errorf("docs/experiments.md is stale: it lacks\n%s", &text)
		}
	}
}

// What the page says of unbounded retries holds for any seed: they collapse
// the server, and the final policy lets it recover.
func TestCollapse(t *testing.T) {
	first := testkit.Seed(t)
	for seed := range uint64(20) {
		c := experiment.Defaults().Scaled(200)
		c.Clients, c.Duration, c.Seed = 50, 24*time.Second, int64((first+seed)>>1)
		r, err := experiment.Overload(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range r.Runs {
			if wanted := run.Policy.Name != "naive"; run.Recovered != wanted || run.Before < 0.9*160 {
				t.Errorf("seed %d: %s: recovered %t from a goodput of %.0f", c.Seed, run.Policy.Name, run.Recovered, run.Before)
			}
		}
	}
}
