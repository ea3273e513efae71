package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

func listCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "list PATH...",
		Short: "List tests with what they do and require",
		Long: `Prints each test with its position, requirements, operations, error codes and error
labels, and the commands that its fail points fail. A flag selects the tests with any of
its values; a test must match all flags.

Exit codes: 0 tests were listed, 2 no test matched, bad usage, or invalid suites.`,
		Example: `# which tests fail a getMore with a code
utr list --operation cursor.iterateUntilDocumentOrError --code 91 specs/
# how many tests each operation has
utr list --json specs/ | jq -r '.operations[]' | sort | uniq -c`,
		Args:              arguments(1, unlimited, "a suite or a directory"),
		ValidArgsFunction: completes(specs.BuiltIn, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		var l listing
		f.filter(&l.filter, "list")
		f.texts(&l.operations, "operation", "KIND.NAME", "only tests with this operation")
		f.texts(&l.failCommands, "fail-command", "NAME", "only tests with a fail point for this command")
		f.texts(&l.codes, "code", "N", "only tests with this error code")
		f.texts(&l.labels, "label", "NAME", "only tests with this error label")
		f.texts(&l.events, "event", "TYPE", "only tests that expect this type of event")
		f.texts(&l.operators, "operator", "$$NAME", "only tests with this special operator")
		f.toggle(&l.out.asJSON, "json", "print a JSON line for each test")
		return l.run
	})
}

type listing struct {
	filter                                                     runner.Filter
	operations, failCommands, codes, labels, events, operators []string
	out                                                        lines
}

type listed struct {
	source.Position
	Description  string            `json:"description"`
	Requirements []json.RawMessage `json:"runOnRequirements,omitempty"` // of the file, then of the test
	SkipReason   *string           `json:"skipReason,omitempty"`
	specs.Traits
}

func (l *listing) run(ctx context.Context, c *call) error {
	suites, err := c.loadFiltered(ctx, l.filter)
	if err != nil {
		return err
	}
	tests, files := 0, 0
	for _, s := range suites {
		before := tests
		for i, t := range s.Tests {
			traits := s.Traits(i)
			if !l.filter.Allows(s, t) || !l.matches(traits) {
				continue
			}
			tests++
			line := listed{t.Position, t.Description, nil, t.SkipReason, traits}
			for _, of := range []*source.Value{s.Root, s.Root.Get("tests").Items[i]} {
				if r := of.Get("runOnRequirements"); r != nil {
					line.Requirements = append(line.Requirements, json.RawMessage(r.JSON()))
				}
			}
			l.out.add(line, "%s", line.text())
		}
		if tests > before {
			files++
		}
	}
	if tests == 0 {
		return usage("no test of %d files matches all flags", len(suites))
	}
	l.out.add(nil, "%d tests of %d files\n", tests, files)
	return c.print(l.out.String())
}

func (l *listing) matches(t specs.Traits) bool {
	return !slices.ContainsFunc([][2][]string{
		{l.operations, t.Operations}, {l.failCommands, t.FailCommands}, {l.codes, t.CodeNames()},
		{l.labels, t.Labels}, {l.events, t.Events}, {l.operators, t.Operators},
	}, func(f [2][]string) bool {
		has := func(name string) bool { return slices.Contains(f[1], name) }
		return len(f[0]) > 0 && !slices.ContainsFunc(f[0], has)
	})
}

func (l listed) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", l.Position, l.Description)
	for _, r := range l.Requirements {
		fmt.Fprintf(&b, "    requires    %s\n", r)
	}
	for _, f := range [][2]string{
		{"operations", strings.Join(l.Operations, " ")},
		{"fails", strings.Join(l.FailCommands, " ")},
		{"codes", strings.Trim(fmt.Sprint(l.Codes), "[]")},
		{"labels", strings.Join(l.Labels, " ")},
	} {
		if f[1] != "" {
			fmt.Fprintf(&b, "    %-12s%s\n", f[0], f[1])
		}
	}
	if l.SkipReason != nil {
		fmt.Fprintf(&b, "    skipped     %s\n", *l.SkipReason)
	}
	return b.String()
}
