package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/process/official"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/program/internal/coverage"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// load loads suites. Canceling ctx ends it even while it reads standard input.
func (c *call) load(ctx context.Context, o specs.Options) (*specs.Loaded, error) {
	if slices.Contains(c.paths, "") {
		return nil, usage("a path is empty")
	}
	o.Stdin, o.Official = c.program.Stdin, c.official()
	var loaded *specs.Loaded
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		loaded, err = specs.Load(c.paths, o)
	}()
	select {
	case <-read:
		return loaded, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// official returns the folder of the official suites, or "" if there is neither one nor a cache folder.
func (c *call) official() string {
	dir, _ := official.Dir(c.env) // without a folder, paths of official suites are errors
	return dir
}

// completeSuites returns the names of built-in suites, and of official ones if they are there.
func (c *call) completeSuites() []string {
	return append(specs.BuiltIn(), specs.OfficialSuites(c.official())...)
}

// shortLived makes garbage collection rare until the returned function is called. It took a quarter of the time of
// commands that only read suites.
func shortLived() func() {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// matching returns the elements whose name matches a pattern, or all if there are no patterns.
func matching[T any](all []T, patterns []*regexp.Regexp, name func(T) string) []T {
	matches := func(one T) bool {
		return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name(one)) })
	}
	return slices.DeleteFunc(all, func(one T) bool { return len(patterns) > 0 && !matches(one) })
}

// loadFiltered loads suites, if the command line names some. It is a usage error if the filter excludes all tests.
func (c *call) loadFiltered(ctx context.Context, filter runner.Filter) ([]*specs.Suite, error) {
	if len(c.paths) == 0 {
		return nil, nil
	}
	loaded, err := c.load(ctx, specs.Options{})
	if err != nil {
		return nil, invalid(err)
	}
	if left := loaded.Summary(c.verbose); left != "" {
		c.note(left)
	}
	if len(filterSuites(loaded.Suites, filter)) == 0 {
		return nil, usage("%s", strings.Join(runner.Unused(loaded.Suites, runner.Config{Filter: filter}, time.Now()), "; "))
	}
	return loaded.Suites, nil
}

// ofCell returns the verdicts of a cell, or else all verdicts: durations of other cells are better than none.
func ofCell(verdicts []*result.Verdict, cell string) []*result.Verdict {
	own := slices.DeleteFunc(slices.Clone(verdicts), func(v *result.Verdict) bool { return v.Test.Cell != cell })
	if len(own) == 0 {
		return verdicts
	}
	return own
}

func filterSuites(suites []*specs.Suite, f runner.Filter) []*specs.Suite {
	return slices.DeleteFunc(slices.Clone(suites), func(s *specs.Suite) bool {
		return !slices.ContainsFunc(s.Tests, func(t *specs.Test) bool { return f.Allows(s, t) })
	})
}

// wouldRun describes a run that does not take place.
func wouldRun(suites []*specs.Suite, f runner.Filter) string {
	var b strings.Builder
	tests := 0
	for _, s := range suites {
		for _, t := range s.Tests {
			if f.Allows(s, t) {
				tests++
				fmt.Fprintf(&b, "  %s: %s\n", s.File, t.Description)
			}
		}
	}
	head := fmt.Sprintf("%s in %s would run if the requirements are met:\n",
		plural.Of(tests, "test"), plural.Of(len(suites), "file"))
	dropped := runner.Namespaces(suites)
	if len(dropped) > 0 {
		b.WriteString("these collections would be dropped or changed:\n")
	}
	for _, namespace := range dropped {
		fmt.Fprintf(&b, "  %s\n", namespace)
	}
	return head + b.String()
}

func listCommand(c *call) *cobra.Command {
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

func (l *listing) run(ctx context.Context, c *call) error {
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

func coverageCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "coverage PATH...",
		Short: "Count what suites exercise, and list what they do not",
		Long: `Counts the tests for each operation, error code, error label, command of a fail
point, event type and special operator, and lists what no test exercises. With
--against, it also lists what only one of two sets of suites exercises. With --report,
it counts the rules of the retry core that decided in a run, whose report is written by
utr run --events --json FILE.

Exit codes: 0 the counts were printed, 2 bad usage or invalid suites.`,
		Example: `# what one set of suites exercises and another does not
utr coverage retryable-reads --against dated/retryable-reads-2024
# with the rules that decided
utr run --events --json run.json retryable-reads
utr coverage --report run.json retryable-reads`,
		Args:              arguments(1, unlimited, "a suite or a folder"),
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		var o coverageOptions
		f.texts(&o.against, "against", "PATH", "compare with these suites")
		f.file(&o.report, "report", "count the rules of the retry core in the report of a run")
		f.file(&o.html, "html", "write a page for a browser", ".yml", ".yaml")
		f.toggle(&o.asJSON, "json", "print the counts as JSON")
		return o.run
	})
}

type coverageOptions struct {
	against      []string
	report, html string
	asJSON       bool
}

func (o *coverageOptions) run(ctx context.Context, c *call) error {
	suites, err := c.loadFiltered(ctx, runner.Filter{})
	if err != nil {
		return err
	}
	of := strings.Join(c.paths, " ")
	count, against := coverage.Of(suites), coverage.Count(nil)
	if o.report != "" {
		past, err := readReport(o.report)
		if err != nil {
			return err
		}
		if !count.Rules(past.Verdicts) {
			return usage("%s contains no decisions of the retry core: utr run --events --json FILE writes them with the reference engine", o.report)
		}
	}
	if len(o.against) > 0 {
		c.paths = o.against
		others, err := c.loadFiltered(ctx, runner.Filter{})
		if err != nil {
			return err
		}
		against = coverage.Of(others)
	}
	sections := coverage.Sections(count, against)
	if err := writeFile(o.html, func(w io.Writer) error {
		return coverage.HTML(w, sections, of, strings.Join(o.against, " "))
	}); err != nil {
		return err
	}
	if !o.asJSON {
		return c.print(coverage.Text(sections))
	}
	return c.print(jsonPage(sections))
}
