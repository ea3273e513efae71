package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// knownFailing reads the list of what the Go driver fails.
func knownFailing(t *testing.T) []runner.KnownFailure {
	t.Helper()
	name := filepath.Join("..", "..", "known-failing", "driver.txt")
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	list, err := runner.ParseKnownFailing(name, f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The Go driver passes our own suites but for what its list says, and skips
// for requirements and for what it lacks alone. Load balanced, where it has no
// heartbeats to wait for; the other topologies take minutes. Of client
// backpressure, whose delays the driver sleeps, only what its list names.
func TestDriverPasses(t *testing.T) {
	d, err := deployment.OpenEmbedded(t.Context(), deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.LoadBalanced}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	e := driver.New(driver.Options{})
	defer func() { _ = e.Close() }()
	var suites []*specs.Suite
	for _, s := range specifications {
		suites = append(suites, load(t, filepath.Join("..", "..", "specs", s.name))...)
	}
	b := &bench{config: runner.Config{Engine: e, Source: d, Jobs: 8, Timeout: time.Minute}}
	slow := regexp.MustCompile(`/client-backpressure/(client-|collection-|timeoutMS|maxAdaptiveRetries|transactions|convenient-transactions|getMore)`)
	count := map[result.Status]int{}
	for _, v := range b.run(t, suites, func(c *runner.Config) {
		c.KnownFailing = knownFailing(t)
		c.Filter.Skip = []*regexp.Regexp{slow}
	}) {
		count[v.Status]++
		switch {
		case v.Status == result.Passed, v.Status == result.KnownFailing:
		case v.SkipKind == result.SkipFilter && slow.MatchString(v.Test.File):
		case v.Status == result.Skipped && (v.SkipKind == result.SkipRequirement || v.SkipKind == result.SkipCapability):
		default:
			t.Errorf("%s\n%s", v.Position, describe(v))
		}
	}
	t.Logf("%v", count)
	if count[result.Passed] < 1000 || count[result.KnownFailing] < 50 {
		t.Errorf("%v: hardly anything ran", count)
	}
}
