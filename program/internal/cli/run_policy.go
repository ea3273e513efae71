package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// policyHint counts the failed tests of suites for policies other than the policy of the run. The description of a
// suite for an earlier policy begins with the name of the policy and a colon.
type policyHint struct {
	policy string // of the run, "" for the current one
	failed map[string]int
}

func (h policyHint) notify(n result.Note) {
	f, is := n.(result.TestFinished)
	if !is || f.Verdict.Status != result.Failed {
		return
	}
	name, _, found := strings.Cut(f.Verdict.Test.Suite, ":")
	if _, err := retry.Named(name); found && err == nil && name != "" && name != h.policy {
		h.failed[name]++
	}
}

func (h policyHint) print(c *invocation) {
	for _, policy := range slices.Sorted(maps.Keys(h.failed)) {
		c.note(fmt.Sprintf("%d failed, in suites for the policy %s: run these with --policy %[2]s", h.failed[policy], policy))
	}
}

// policy declares a flag for a retry policy, "" for the current one.
func (f *flags) policy(to *string, name, summary string) {
	set(f, to, name, "NAME", summary, orDefault(oneOf[string](policyNames())), policyNames()...)
}

// policyNamed returns the policy of a flag that policy has declared.
func policyNamed(name string) *retry.Policy {
	p, _ := retry.Named(name) // the flag accepts only names of policies
	return p
}

func policyNames() []string {
	return mapSlice(retry.Policies(), func(p *retry.Policy) string { return p.Name })
}
