package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

func listCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "list PATH...",
		Short: "List tests with what they do and require",
		Long: `Prints each test with its position, requirements, operations, error codes and error
labels, and the commands that its fail points fail. A flag selects the tests with any of
its values; a test must match all flags.

Exit codes: 0 tests were listed, 2 no test matched, bad usage, or invalid suites.`,
		Example: `# which tests fail a getMore with a code
utr list --operation cursor.iterateUntilDocumentOrError --code 91 all
# how many tests each operation has
utr list --json all | jq -r '.operations[]' | sort | uniq -c`,
		Args:              arguments(1, unlimited, "a suite or a folder"),
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		var l listing
		f.filter(&l.filter, "list")
		for i, t := range traits {
			f.traits(&l.wanted[i], t)
		}
		f.toggle(&l.out.asJSON, "json", "print a JSON line for each test")
		return l.run
	})
}

type listing struct {
	filter runner.Filter
	wanted [len(traits)][]string // values of the flags of traits
	out    lines
}

// trait is a list of traits of tests, with the flag that selects tests by it.
type trait struct {
	flag, placeholder, summary string
	of                         func(specs.Traits) []string
}

var traits = [...]trait{
	{"operation", "KIND.NAME", "only tests with this operation", func(t specs.Traits) []string { return t.Operations }},
	{"fail-command", "NAME", "only tests with a fail point for this command",
		func(t specs.Traits) []string { return t.FailCommands }},
	{"code", "N", "only tests with this error code", specs.Traits.CodeNames},
	{"label", "NAME", "only tests with this error label", func(t specs.Traits) []string { return t.Labels }},
	{"event", "TYPE", "only tests that expect this type of event", func(t specs.Traits) []string { return t.Events }},
	{"operator", "$$NAME", "only tests with this special operator", func(t specs.Traits) []string { return t.Operators }},
}

// traits declares the flag of a trait. Shells complete it with the values in the built-in suites.
func (f *flags) traits(to *[]string, t trait) {
	list(f, to, t.flag, t.placeholder, t.summary, anyText)
	f.complete[t.flag] = func() []string {
		built, _ := specs.Load(specs.Current(), specs.Options{}) // they are valid
		return t.values(built.Suites)
	}
}

// values returns all values of a trait in suites.
func (t trait) values(suites []*specs.Suite) []string {
	found := map[string]bool{}
	for _, s := range suites {
		for i := range s.Tests {
			for _, v := range t.of(s.Traits(i)) {
				found[v] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// check rejects values that no test has.
func (l *listing) check(suites []*specs.Suite) error {
	for i, t := range traits {
		if len(l.wanted[i]) == 0 {
			continue
		}
		known := t.values(suites)
		for _, v := range l.wanted[i] {
			if slices.Contains(known, v) {
				continue
			}
			likely := suggest.Hint(v, known)
			same := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !strings.HasSuffix(name, "."+v) })
			if len(same) > 0 { // an operation without its kind
				likely = "; did you mean " + strings.Join(same, " or ") + "?"
			}
			return usage("--%s %s: no test in %s has this%s", t.flag, v, plural.Of(len(suites), "file"), likely)
		}
	}
	return nil
}

type listed struct {
	source.Position
	Description  string            `json:"description"`
	Requirements []json.RawMessage `json:"runOnRequirements,omitempty"` // of the file, then of the test
	SkipReason   *string           `json:"skipReason,omitempty"`
	specs.Traits
}

func (l *listing) run(ctx context.Context, c *invocation) error {
	suites, err := c.loadFiltered(ctx, l.filter)
	if err != nil {
		return err
	}
	if err := l.check(suites); err != nil {
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
		return usage("no test in %s matches all flags", plural.Of(len(suites), "file"))
	}
	l.out.add(nil, "%s in %s\n", plural.Of(tests, "test"), plural.Of(files, "file"))
	return c.print(l.out.String())
}

func (l *listing) matches(of specs.Traits) bool {
	for i, t := range traits {
		has := func(name string) bool { return slices.Contains(t.of(of), name) }
		if len(l.wanted[i]) > 0 && !slices.ContainsFunc(l.wanted[i], has) {
			return false
		}
	}
	return true
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
