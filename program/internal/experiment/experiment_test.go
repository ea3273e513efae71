package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// small is a short experiment.
func small(policies ...string) Config {
	c := Defaults().Scaled(100)
	c.Clients, c.Pool, c.Duration = 50, maxClients, 18*time.Second
	c.Policies = slices.DeleteFunc(c.Policies, func(p Policy) bool { return !slices.Contains(policies, p.Name) })
	return c
}

func overload(t *testing.T, c Config) *Report {
	t.Helper()
	r, err := Overload(context.Background(), c, nil)
	testkit.Check(t, err)
	return r
}

// mostAttempts is the maximum number of attempts per operation by policy, 0 for no limit.
var mostAttempts = map[string]int{"none": 1, "once": 2, "naive": 0, "hasty": 3, "bucket": 6, "final": 3}

// ends counts the ends of operations in addition to measure.
type ends struct {
	*measure
	begun, over, most int
	late              time.Duration
}

func (e *ends) began(at time.Duration) { e.begun++; e.measure.began(at) }

func (e *ends) ended(at, begun time.Duration, success bool, attempts int) {
	e.over++
	e.most, e.late = max(e.most, attempts), max(e.late, at-begun)
	e.measure.ended(at, begun, success, attempts)
}

// violations returns the properties that a run violates.
func violations(c *Config, r *Run, e ends) (out []string) {
	operations, attempts, succeeded, results, even, surplus := 0, 0, 0, 0.0, true, false
	for _, p := range r.Phases {
		even = even && p.Succeeded+p.Failed == p.Operations
		operations, attempts, succeeded = operations+p.Operations, attempts+p.Attempts, succeeded+p.Succeeded
	}
	// Requests that were judged earlier can raise goodput above the capacity for a
	// moment, but not in total.
	for i, rate := range r.Series.Goodput {
		results += rate * step.Seconds()
		surplus = surplus || results > float64(c.Capacity)*step.Seconds()*float64(i+1)+1
	}
	name, most, tokens := r.Policy.Name, mostAttempts[r.Policy.Name], 1000*float64(c.Clients)+1.1*float64(succeeded)
	for what, violated := range map[string]bool{
		"an operation did not end":                  e.begun != e.over,
		"an operation ended after its deadline":     e.late > c.Timeout,
		"an operation neither succeeded nor failed": !even,
		"more results than the capacity allows":     surplus,
		"an operation made too many attempts":       most > 0 && e.most > most,
		"more retries than tokens":                  name == "bucket" && float64(attempts-operations) > tokens,
		"attempts differ from operations":           name == "none" && c.Pool >= maxClients && attempts != operations,
		"an operation had no attempt":               c.Pool >= maxClients && attempts < operations,
	} {
		if violated {
			out = append(out, fmt.Sprintf("%s: %d operations, %d attempts, %+v", what, operations, attempts, e))
		}
	}
	return out
}

// No policy violates a property, whatever the configuration.
func TestProperties(t *testing.T) {
	for _, row := range []struct {
		reason string
		change func(*Config)
	}{
		{"as it is", func(*Config) {}},
		{"no limiter: the queue alone rejects", func(c *Config) { c.Rate = 0 }},
		{"rejecting costs nothing", func(c *Config) { c.Rejection, c.RoundTrip = 0, 20*time.Millisecond }},
		{"judging is all the work", func(c *Config) { c.Rejection = 100 }},
		{"a queue of one", func(c *Config) { c.Queue = 1 }},
		{"a queue longer than the deadline", func(c *Config) { c.Rate, c.Queue, c.Timeout = 0, 400, time.Second }},
		{"no network", func(c *Config) { c.RoundTrip = 0 }},
		{"the deadline comes before the reply", func(c *Config) { c.Timeout, c.RoundTrip = time.Millisecond, time.Second }},
		{"the server says how long to wait", func(c *Config) { c.BaseBackoff = 20 * time.Millisecond }},
		{"one connection", func(c *Config) { c.Clients, c.Pool = 1, 1 }},
		{"few connections for each", func(c *Config) { c.Clients, c.Pool = 10, 2 }},
		{"one client", func(c *Config) { c.Clients = 1 }},
		{"a spike that is a lull", func(c *Config) { c.Spike = 10 }},
	} {
		for _, p := range Policies() {
			t.Run(row.reason+"/"+p.Name, func(t *testing.T) {
				c := small(p.Name).Scaled(60)
				c.Duration, c.Timeout = 6*time.Second, 2*time.Second
				row.change(&c)
				r := ends{measure: newMeasure(&c)}
				testkit.Check(t, simulate(context.Background(), &c, p, &r, func(float64) {}))
				run := r.run(p)
				for _, v := range violations(&c, &run, r) {
					t.Error(v)
				}
			})
		}
	}
}

// Unlimited retries keep the server busy with rejections long after the spike. With
// limited retries it recovers.
func TestOverload(t *testing.T) {
	var names []string
	for _, p := range Policies() {
		names = append(names, p.Name)
	}
	c := small(names...)
	shown := map[string][]float64{}
	all, err := Overload(t.Context(), c, func(name string, part float64) { shown[name] = append(shown[name], part) })
	testkit.Check(t, err)
	for i, run := range all.Runs {
		name := run.Policy.Name
		if name != names[i] || !slices.Equal(run.Series.Begun, all.Runs[0].Series.Begun) {
			t.Errorf("%s met other operations than %s", name, names[0])
		}
		if wanted := name != "naive"; run.Recovered != wanted || run.Phases[0].Goodput < 0.8*80 {
			t.Errorf("%s: recovered %t from a goodput of %.0f", name, run.Recovered, run.Phases[0].Goodput)
		}
		if parts := shown[name]; !slices.IsSorted(parts) || parts[0] > 0.01 || parts[len(parts)-1] != 1 {
			t.Errorf("%s: progress %v", name, parts)
		}
	}
	naive, bucket, final := all.Runs[2], all.Runs[4], all.Runs[5]
	if naive.Phases[2].Goodput > 8 || naive.Silence == 0 {
		t.Errorf("naive: goodput %.0f after the spike, silent for %s", naive.Phases[2].Goodput, naive.Silence)
	}
	if final.Recovery > 5*time.Second {
		t.Errorf("final: back after %s", final.Recovery)
	}
	alone := func(change func(*Config), policies ...string) []Run {
		c := small(policies...)
		change(&c)
		return overload(t, c).Runs
	}
	if again := alone(func(*Config) {}, "final")[0]; !slices.Equal(final.Series.Goodput, again.Series.Goodput) {
		t.Error("the final policy gives other results when others run before it")
	}
	// nothing else paces the retries
	free := alone(func(c *Config) { c.Rejection, c.RoundTrip = 0, 100*time.Millisecond }, "naive")[0]
	if !free.Recovered {
		t.Errorf("free rejections do harm: goodput %.0f after the spike", free.Phases[2].Goodput)
	}
	pools := alone(func(c *Config) { c.Clients, c.Pool = 5, 4 }, "naive")[0]
	if most := peak(pools.Series.Attempts); !pools.Recovered || most > 20/c.RoundTrip.Seconds() {
		t.Errorf("small pools: recovered %t, with %.0f requests per second on 20 connections", pools.Recovered, most)
	}
	runs := alone(func(c *Config) { c.Clients, c.Capacity, c.Duration = 1, 200, 24*time.Second }, "bucket", "none")
	if none, few := runs[0].Phases[1], runs[1].Phases[1]; few.Attempts-few.Operations > 1200 ||
		few.Goodput < 0.5*none.Goodput {
		t.Errorf("one client makes %d attempts of %d operations; goodput %.0f, without retries %.0f", few.Attempts,
			few.Operations, few.Goodput, none.Goodput)
	}
	if many := bucket.Phases[1]; float64(many.Attempts) < 3*float64(many.Operations) {
		t.Errorf("50 clients make only %d attempts of %d operations", many.Attempts, many.Operations)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Overload(ctx, small("final"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled experiment ended with %v", err)
	}
}

// The same configuration produces the same reports, byte for byte.
func TestSameSeedSameBytes(t *testing.T) {
	outputs := func(seed int64) (out []string) {
		c := small("none", "final")
		c.Duration, c.Seed = 6*time.Second, seed
		r := overload(t, c)
		for _, write := range []func(io.Writer) error{r.Text, r.JSON, r.HTML, r.SVG} {
			var b bytes.Buffer
			testkit.Check(t, write(&b))
			out = append(out, b.String())
		}
		return out
	}
	first := outputs(1)
	if !slices.Equal(first, outputs(1)) {
		t.Error("the same configuration produced different reports")
	}
	for i, other := range outputs(2) {
		if other == first[i] {
			t.Errorf("output %d does not depend on the seed", i)
		}
	}
}

// Every bound of a configuration is checked.
func TestCheck(t *testing.T) {
	testkit.PlayStories(t, "testdata/check.txt", func(t *testing.T, s testkit.Story) string {
		c, given := Defaults(), strings.SplitAfter(s.Text, "\n")[0]
		testkit.Check(t, json.Unmarshal([]byte(given), &c))
		_, err := Overload(context.Background(), c, nil)
		return fmt.Sprintf("%s    %v\n", given, err)
	})
}

// Policies do not share rules.
func TestPolicies(t *testing.T) {
	all := Policies()
	hasty, final := all[3], all[5]
	if slices.Contains(hasty.rules.Rules.IDs(), "B6") || !slices.Contains(final.rules.Rules.IDs(), "B6") {
		t.Error("removing a rule from one policy changes another")
	}
}

func TestRecovery(t *testing.T) {
	series := func(parts ...int) (out []float64) {
		for i := 0; i < len(parts); i += 2 {
			out = append(out, slices.Repeat([]float64{float64(parts[i+1])}, parts[i])...)
		}
		return out
	}
	for _, row := range []struct {
		reason  string
		goodput []float64
		want    time.Duration
		ok      bool
	}{
		{"always at 100 percent", series(20, 100), 0, true},
		{"95 percent suffices", series(20, 95), 0, true},
		{"94 percent does not", series(20, 94), 0, false},
		{"back after a second", series(4, 100, 4, 0, 12, 100), time.Second, true},
		{"a moment is not a recovery", series(4, 0, 4, 100, 12, 0), 0, false},
		{"too late for a whole second", series(17, 0, 3, 100), 0, false},
	} {
		got, ok := recovery(row.goodput, time.Second, 100)
		testkit.Equal(t, row.reason, []any{got, ok}, []any{row.want, row.ok})
	}
}

// Each column of the table has the numbers of its phase.
func TestText(t *testing.T) {
	some := Phase{Operations: 2, Succeeded: 1, Failed: 1, P50: 51 * time.Millisecond, P99: 99 * time.Millisecond}
	r := Report{Config: small("none"), Runs: []Run{{Phases: [3]Phase{1: some}}, {Phases: [3]Phase{2: some}}}}
	var text strings.Builder
	testkit.Check(t, r.Text(&text))
	for _, want := range []string{`50.0% +0.0% .* 51 ms +99 ms +none +none +never`,
		`0.0% +50.0% .* none +none +51 ms +99 ms +never`} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("no row matches %s\n%s", want, &text)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, row := range []struct {
		values  []time.Duration
		percent int
		want    time.Duration
	}{
		{nil, 50, 0}, {hundred[:1], 99, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 95, 95}, {hundred, 99, 99}, {hundred, 100, 100},
	} {
		testkit.Equal(t, fmt.Sprintf("p%d of %d", row.percent, len(row.values)),
			percentile(row.values, row.percent), row.want)
	}
}

// The page contains the output of the short experiment. soak/experiment checks all of it.
func TestPage(t *testing.T) {
	page := testkit.Read(t, "../../../docs/application/experiments.md")
	blanks := regexp.MustCompile(` +`)
	c := Defaults()
	c.Duration, c.Spike, c.Policies = 6*time.Second, 130, c.Policies[:2]
	var text strings.Builder
	testkit.Check(t, overload(t, c).Text(&text))
	before := ""
	for part := range strings.SplitSeq(blanks.ReplaceAllString(text.String(), " "), "\n\n") {
		part, before = before+strings.TrimRight(part, "\n"), "\n\n"
		if !strings.Contains(blanks.ReplaceAllString(page, " "), part) {
			t.Errorf("docs/application/experiments.md is stale: it lacks\n%s", part)
		}
	}
}

// A small experiment gives the same answers to the questions as the page.
func TestQuestions(t *testing.T) {
	answers := map[string]*Report{}
	for _, q := range Questions() {
		c := Defaults().Scaled(200)
		c.Clients = 50
		q.Set(&c)
		c.Duration = 12 * time.Second
		answers[q.Name] = overload(t, c)
	}
	for _, r := range []struct {
		reason string
		holds  func(func(question string, policy int) Phase) bool
	}{
		{"a first backoff of 200 ms is not much worse than one of 100 ms",
			func(in func(string, int) Phase) bool { return in("exponent", 0).Goodput > in("exponent", 1).Goodput/2 }},
		{"backoffs that double are better",
			func(in func(string, int) Phase) bool { return in("base", 0).Goodput > in("base", 1).Goodput }},
		{"each of the first retries costs goodput", func(in func(string, int) Phase) bool {
			return in("retries", 0).Goodput > in("retries", 1).Goodput && in("retries", 1).Goodput > in("retries", 2).Goodput
		}},
		{"without a backoff there are twice as many attempts", func(in func(string, int) Phase) bool {
			return in("backoff", 0).PerOperation() > 2*in("backoff", 1).PerOperation()
		}},
		{"one retry survives one restart",
			func(in func(string, int) Phase) bool { return in("restart", 1).Failed < in("restart", 0).Failed }},
		{"one retry does not survive all restarts",
			func(in func(string, int) Phase) bool { return in("restart", 1).Failed > 0 }},
		{"retries until the deadline survive all",
			func(in func(string, int) Phase) bool { return in("restart", 2).Failed == 0 }},
	} {
		if !r.holds(func(question string, policy int) Phase { return answers[question].Runs[policy].Phases[1] }) {
			t.Errorf("this does not hold: %s", r.reason)
		}
	}
	c := Defaults().Scaled(200)
	c.Clients, c.Duration, c.Policies = 2, 12*time.Second, Policies()[4:5]
	if tokens := overload(t, c).Runs[0].Series.Tokens; tokens[0] != 1000 || tokens[len(tokens)/3] > 100 ||
		tokens[len(tokens)-1] < tokens[len(tokens)/3] {
		t.Errorf("the buckets do not empty and refill: %v", tokens)
	}
}
