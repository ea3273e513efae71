package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
)

// A sample of our suites has the same verdicts and command events with the fail points of the deployment and with those
// of the proxy. Tests whose fail point takes effect inside a server are skipped there.
func TestProxiedFailPoints(t *testing.T) {
	suites := suitetest.Share(t, 192)
	var verdicts [2][]*result.Verdict
	for i, mode := range []deployment.FailPointMode{deployment.FailPointsServer, deployment.FailPointsProxy} {
		b := suitetest.New(t, deployment.EmbeddedOptions{FailPointMode: mode})
		b.Config.AllTopologies, b.Config.KeepEvents = true, true
		verdicts[i] = b.Run(t, suites)
		suitetest.CheckVerdicts(t, verdicts[i], result.SkipRequirement)
	}
	testkit.Equal(t, "verdicts", len(verdicts[1]), len(verdicts[0]))
	open := map[result.Position]bool{} // tests that leave their events open, such as tests of timeouts
	for _, s := range suites {
		for _, test := range s.Tests {
			open[test.Position] = len(test.ExpectEvents) == 0
			for _, e := range test.ExpectEvents {
				open[test.Position] = open[test.Position] || e.Get("ignoreExtraEvents").IsTrue()
			}
		}
	}
	for i, own := range verdicts[0] {
		proxied := verdicts[1][i]
		if proxied.Status == result.Skipped && strings.Contains(proxied.Reason, "the proxy cannot execute it") {
			continue
		}
		testkit.Equal(t, "the verdict of "+suitetest.Describe(own), proxied.Status, own.Status)
		// On several mongoses, chance selects one.
		if !open[own.Position] && !strings.HasPrefix(own.Test.Deployment, string(deployment.Sharded)) {
			testkit.Same(t, "the events of "+suitetest.Describe(own), commandEvents(proxied), commandEvents(own))
		}
	}
}

// commandEvents returns the command events of a test, a line for each.
func commandEvents(v *result.Verdict) string {
	var lines []string
	for _, c := range v.Clients {
		for _, e := range c.Events {
			if e.Type.Monitor() != result.MonitorCommand {
				continue
			}
			line := fmt.Sprint(c.Client, " ", e.Type, " ", e.CommandName)
			if e.Failure != nil {
				line += fmt.Sprint(" ", e.Failure.Code, " ", e.Failure.Labels)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
