package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// pins reports whether the reference engine performs the operation on a replica set by package pinning.
func (e *explainFlags) pins(policy *retry.Policy, o retry.Operation) bool {
	return policy.Pinning != "" && !e.settings.InTransaction &&
		(o.Class == operations.Read && o.Name != "getMore" || ignores(o))
}

// ignores reports whether an operation is not subject to a read preference. The name of a generic command is not known.
func ignores(o retry.Operation) bool {
	return o.Name == "runCommand" || o.Name == "aggregate with a write stage"
}

// threeMembers are a primary and two secondaries at the same distance.
func threeMembers() selection.Case {
	types := []selection.ServerType{selection.RSPrimary, selection.RSSecondary, selection.RSSecondary}
	one := selection.Case{Options: selection.Options{LocalThreshold: selection.DefaultLocalThreshold}}
	for i, kind := range types {
		one.Topology.Servers = append(one.Topology.Servers, selection.Server{Address: string(rune('a' + i)), Type: kind})
	}
	return one
}

// simulateRead runs the rules of package pinning over the results. The first read of a thread is not pinned.
func (e *explainFlags) simulateRead(c *invocation, revision string, o retry.Operation, one selection.Case) error {
	if err := pinning.Validate(one.Preference); err != nil {
		return invalid(err)
	}
	preference := pinning.Preference{Preference: one.Preference, Latency: one.Options.LocalThreshold}
	if strings.HasPrefix(o.Name, "list") {
		preference.Preference = selection.Preference{}
	}
	thread, kind, results, failure := pinning.Thread{Rules: pinning.Named(revision)}, pinning.Read, e.results, ""
	for attempt := 0; ; {
		var d pinning.Decision
		thread, d = pinning.Next(thread, pinning.Input{Kind: kind, Preference: preference, Ignores: ignores(o),
			Members: one.Topology.Servers, Random: e.jitter})
		text := d.Action.String()
		switch {
		case d.Action == pinning.Send:
			attempt++
			text += " to " + d.Member
		case d.Text != "":
			text += ": " + d.Text
		case d.Action == pinning.ReturnError || failure != "":
			text += fmt.Sprintf(" of attempt %d: %s", attempt, failure)
		}
		if d.Refresh {
			text += ", and check the set"
		}
		e.out.add(reference.DecisionOfRead(d, attempt), "attempt %d: %s [%s]\n", max(attempt, 1), text,
			strings.Join(d.Rules, " "))
		switch {
		case d.Action != pinning.Send && len(results) > 0:
			e.out.add(nil, "%d --try unused\n", len(results))
			return c.print(e.out.String())
		case d.Action != pinning.Send, len(e.results) == 0:
			return c.print(e.out.String())
		case len(results) == 0:
			e.out.add(nil, "no --try results left\n")
			return c.print(e.out.String())
		}
		kind, failure = ended(results[0])
		results = slices.Delete(slices.Clone(results), 0, 1)
	}
}

// ended converts the result of an attempt: only an error reply ends the read with an error.
func ended(in retry.Input) (pinning.InputKind, string) {
	f := in.Failure
	switch {
	case in.Kind == retry.Succeeded:
		return pinning.Answered, ""
	case f.Kind == retry.Server:
		return pinning.Refused, fmt.Sprintf("%s %d", f.Kind, f.Code)
	}
	return pinning.Broken, f.Kind.String()
}
