package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// A failure says what the servers did meanwhile, on every topology, with
// access control, and without what nobody may read.
func TestServerLogOfFailure(t *testing.T) {
	auth := true
	b := bench.New(t, deployment.EmbeddedOptions{Auth: &auth})
	var told []string
	for _, v := range b.Everywhere(t, load(t, "two-finds")) {
		var text strings.Builder
		for _, l := range v.ServerLog {
			text.WriteString(l.Server + " " + l.Text + "\n")
		}
		told = append(told, fmt.Sprintf("%s: %s %t", v.Test.Description, v.Status, text.Len() > 0))
		if text.Len() == 0 {
			continue
		}
		rest := text.String()
		for _, want := range []string{"application the-test", "saslContinue admin ok", "fail point failCommand set: ",
			"fail point hits find: error 91 ShutdownInProgress", "find log.coll error 91 ShutdownInProgress", "find log.coll ok"} {
			_, after, found := strings.Cut(rest, want)
			if rest = after; !found {
				t.Fatalf("%s: %q is missing, or in another order:\n%s", v.Test.Deployment, want, text.String())
			}
		}
		// It has nothing of the authentication but names.
		for _, not := range []string{"payload", "r=", "biws", "conversationId"} {
			if strings.Contains(text.String(), not) {
				t.Errorf("%s: the log has %q:\n%s", v.Test.Deployment, not, text.String())
			}
		}
		testkit.Says(t, string(report.JSON()(result.TestFinished{Verdict: v})), `"serverLog"`)
		testkit.Says(t, string(report.HTML()(result.TestFinished{Verdict: v})), `"serverLog"`)
	}
	slices.Sort(told) // on four topologies
	testkit.Equal(t, "verdicts", told, append(slices.Repeat([]string{"a test that fails: failed true"}, 4), slices.Repeat([]string{"a test that passes: passed false"}, 4)...))
}

// What a test sent is over on the servers before its fail points go off and
// before its outcome is read.
func TestServersThatGoOn(t *testing.T) {
	b := bench.New(t, deployment.EmbeddedOptions{})
	b.Config.AllTopologies, b.Config.Jobs = true, 1
	bench.AllWell(t, b.Run(t, load(t, "goes-on")), result.SkipRequirement)
}
