package prose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The constants of the two policies with client backpressure.
var (
	today = Constants{Backoffs: []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}}
	then  = Constants{Tokens: 1000, Backoffs: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond,
		400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond}}
)

// check runs a test under a policy on an embedded deployment of a topology.
func check(t *testing.T, test Test, policy, topology string) error {
	t.Helper()
	setting := Setting{Constants: today, Engine: func(jitter *float64) (engine.Engine, error) {
		options := reference.Options{Policy: policy}
		if jitter != nil {
			options.Random = func() float64 { return *jitter }
		}
		e, err := reference.New(options)
		testkit.Check(t, err)
		t.Cleanup(func() { _ = e.Close() })
		return e, nil
	}}
	if policy == proposal {
		setting.Constants = then
	}
	if topology != "" {
		lender, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{
			Topologies: []deployment.Topology{deployment.Topology(topology)}, Version: "9.0"})
		testkit.Check(t, err)
		t.Cleanup(func() { _ = lender.Close() })
		d, err := lender.Acquire(context.Background(), 0)
		testkit.Check(t, err)
		setting.Deployment = d
	}
	return test.Check(context.Background(), setting)
}

// The page has the number of tests of the current policy.
func TestPage(t *testing.T) {
	n := 0
	for _, test := range Tests() {
		if slices.Contains(test.Policies, current) {
			n++
		}
	}
	testkit.Contains(t, testkit.Read(t, "../../../docs/driver/prose.md"),
		fmt.Sprintf("passes all %d tests that apply to `current`", n))
}

// timed are tests with time limits that a busy machine can miss, so they are repeated.
var timed = map[string]bool{"reads-5": true, "writes-6.5": true, "backpressure-1": true, "backpressure-5": true}

// Every test passes under each of its policies: on all its topologies under the current one, else on the last.
func TestProse(t *testing.T) {
	for _, test := range Tests() {
		for _, policy := range test.Policies {
			topologies := test.Needs.Topologies
			switch {
			case len(topologies) == 0:
				topologies = []string{""}
			case policy != current:
				topologies = topologies[len(topologies)-1:]
			}
			for _, topology := range topologies {
				t.Run(test.Name+" "+policy+" "+topology, func(t *testing.T) {
					t.Parallel()
					err := check(t, test, policy, topology)
					for n := 0; err != nil && n < 4 && timed[test.Name]; n++ {
						err = check(t, test, policy, topology)
					}
					testkit.Check(t, err)
				})
			}
		}
	}
}

// Every test fails under a policy with other rules.
func TestProseCanFail(t *testing.T) {
	const writes18, preferences14 = "retryable-writes@2018-03-14", "read-preferences@2014-02-14"
	otherwise := map[string]string{
		"reads-1": writes18, "reads-2.1": writes18, "reads-2.2": writes18, // no read is retried
		"reads-3.1": reads24,                         // nothing is retargeted
		"reads-3.2": proposal, "reads-3.3": proposal, // everything is
		"reads-4": reads26, "reads-5": reads26, // there is one retry, without backoff
		"writes-1": preferences14, "writes-4": preferences14, "writes-5": preferences14, // no write is retried
		"writes-2": writes18, "writes-3": writes18, // not after a pool was cleared; NoWritesPerformed is not known
		"writes-6.1": reads26, "writes-6.2": writes18, "writes-6.3": writes18, "writes-6.4": reads26, "writes-6.5": reads26,
		"backpressure-1": reads26, "backpressure-2": current, "backpressure-3": reads26, // no backoff, no bucket, no retry
		"backpressure-4": proposal, "backpressure-5": proposal, // neither option nor baseBackoffMS
	}
	for _, test := range Tests() {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			topology := ""
			if n := len(test.Needs.Topologies); n > 0 {
				topology = test.Needs.Topologies[n-1]
			}
			err := check(t, test, otherwise[test.Name], topology)
			if lacking := (*Unmet)(nil); err == nil || errors.As(err, &lacking) {
				t.Errorf("it ends with %v under %s", err, otherwise[test.Name])
			}
			t.Log(err)
		})
	}
}

// leaving is an engine that cannot turn fail points off.
type leaving struct{ engine.Engine }

func (l leaving) Begin(ctx context.Context) (engine.Test, error) {
	t, err := l.Engine.Begin(ctx)
	return leavingTest{t}, err
}

type leavingTest struct{ engine.Test }

func (l leavingTest) Do(ctx context.Context, o engine.Operation) result.Outcome {
	if o.Name == engine.OpConfigureFailPoint && o.Arguments.Lookup("command", "mode").String() == `"off"` {
		return result.Outcome{Err: &result.Error{Message: "not now"}}
	}
	return l.Test.Do(ctx, o)
}

// A test that leaves a fail point on is reported even if it passes.
func TestUnclean(t *testing.T) {
	lender, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.ReplicaSet}})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = lender.Close() })
	d, err := lender.Acquire(context.Background(), 0)
	testkit.Check(t, err)
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = e.Close() })
	tests := Tests()
	i := slices.IndexFunc(tests, func(x Test) bool { return x.Name == "backpressure-4" })
	err = tests[i].Check(context.Background(),
		Setting{Deployment: d, Constants: today, Engine: func(*float64) (engine.Engine, error) { return leaving{e}, nil }})
	if unclean := (*Unclean)(nil); !errors.As(err, &unclean) {
		t.Errorf("it ends with %v", err)
	}
}
