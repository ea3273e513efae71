// Command drivers generates docs/drivers.md from the report of drivers.yml:
//
//	utr matrix docs/examples/drivers.yml --json drivers.json
//	go run ./internal/drivers drivers.json > docs/drivers.md
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/report"
	"github.com/unified-test-runner/utr/result"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drivers REPORT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "drivers: %s\n", err)
		os.Exit(1)
	}
}

func write(name string, to io.Writer) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	past, err := report.Read(name, from)
	switch {
	case err != nil:
		return err
	case past.Run == nil || len(past.Run.Breaks) > 0:
		return fmt.Errorf("%s: the run broke or has not finished", name)
	}
	page, err := markdown(past.Verdicts)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = io.WriteString(to, page)
	return err
}

// driver has the results of an engine.
type driver struct {
	name     string
	version  string                           // of the tested driver; "" if no reason has it
	statuses map[string]map[result.Status]int // by group of suites
	lacks    map[string]int                   // tests by what the engine does not support
	differs  map[string]int                   // tests by what the driver does differently
	departs  map[string]string                // what it does, by suite of deviations
}

const deviations = "deviations"

// collect groups verdicts by engine, in the order of their cells. The names of cells are cluster_engine_suites. A red
// verdict is an error, because the page explains every failure, and so is a test that did not run.
func collect(verdicts []*result.Verdict) ([]*driver, error) {
	var all []*driver
	for _, v := range verdicts {
		cell := strings.Split(v.Test.Cell, "_")
		if len(cell) != 3 {
			return nil, fmt.Errorf("the cell %q is not cluster_engine_suites", v.Test.Cell)
		}
		if v.Status.FailsRun() || v.SkipKind == result.SkipNotRun {
			return nil, fmt.Errorf("%s: %s: %q %s", v.Test.Cell, v.Test.File, v.Test.Description, v.Status)
		}
		engine, suites := cell[1], cell[2]
		i := slices.IndexFunc(all, func(d *driver) bool { return d.name == engine })
		if i < 0 {
			i = len(all)
			all = append(all, &driver{name: engine, statuses: map[string]map[result.Status]int{}, lacks: map[string]int{},
				differs: map[string]int{}, departs: map[string]string{}})
		}
		d := all[i]
		if suites == deviations {
			if v.Status != result.Skipped {
				name := strings.TrimSuffix(path.Base(v.Test.File), path.Ext(v.Test.File))
				if d.departs[name] == "" || v.Status == result.KnownFailing {
					d.departs[name] = word(v)
				}
			}
			continue
		}
		if d.statuses[suites] == nil {
			d.statuses[suites] = map[result.Status]int{}
		}
		switch {
		case v.Status == result.KnownFailing:
			version, why := splitVersion(v.Reason)
			d.version = cmp.Or(d.version, version)
			d.differs[why]++
		case v.SkipKind == result.SkipCapability:
			d.lacks[strings.TrimPrefix(v.Reason, "the engine does not support ")]++
		case v.Status == result.Skipped:
			continue // no engine can run it on this cluster
		}
		d.statuses[suites][v.Status]++
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no tests")
	}
	return all, nil
}

// word says what a driver does in a suite of deviations.
func word(v *result.Verdict) string {
	switch _, why := splitVersion(v.Reason); {
	case v.Status != result.KnownFailing:
		return "same"
	case strings.HasPrefix(why, "permitted"):
		return "differs"
	}
	return "departs"
}

// versioned matches what a reason begins with: whether the failure depends on timing, the version of the driver, a ticket.
var versioned = regexp.MustCompile(`^(?:sometimes: )?(\d[\w.]*)((?: \([^)]*\))?): `)

// splitVersion splits off the version of the driver at the start of a reason.
func splitVersion(reason string) (version, why string) {
	m := versioned.FindStringSubmatch(reason)
	if m == nil {
		return "", reason
	}
	return m[1], reason[len(m[0]):] + m[2]
}

// head is the page up to the first row of its first table.
//
//go:embed head.md
var head string

func markdown(verdicts []*result.Verdict) (string, error) {
	drivers, err := collect(verdicts)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(head)
	for _, d := range drivers {
		for _, suites := range slices.Sorted(maps.Keys(d.statuses)) {
			s := d.statuses[suites]
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", d.name, suites, s[result.Passed], s[result.KnownFailing], s[result.Skipped])
		}
	}
	b.WriteString(deviationTable(drivers))
	for _, d := range drivers {
		if len(d.differs)+len(d.lacks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSpace(d.name+" "+d.version))
		table(&b, "does differently", d.differs)
		table(&b, "does not support", d.lacks)
	}
	return b.String(), nil
}

// table writes numbers of tests by name, the highest first.
func table(b *strings.Builder, title string, tests map[string]int) {
	if len(tests) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| tests | %s |\n|---|---|\n", title)
	names := slices.SortedFunc(maps.Keys(tests), func(x, y string) int {
		return cmp.Or(tests[y]-tests[x], strings.Compare(x, y))
	})
	for _, name := range names {
		fmt.Fprintf(b, "| %d | %s |\n", tests[name], strings.ReplaceAll(name, "|", `\|`))
	}
}

// deviationTable returns a table of the suites of specs/deviations and the drivers that differ.
func deviationTable(drivers []*driver) string {
	suites := map[string]bool{}
	for _, d := range drivers {
		for name := range d.departs {
			suites[name] = true
		}
	}
	if len(suites) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## Deviations\n\nThe suites of [deviations.md](deviations.md): a driver does the same as the reference engine, *differs* as the text\npermits, or *departs* from the specification.\n\n| suite |")
	for _, d := range drivers {
		fmt.Fprintf(&b, " %s |", d.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(drivers)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(suites)) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, d := range drivers {
			fmt.Fprintf(&b, " %s |", cmp.Or(d.departs[name], "does not run"))
		}
		b.WriteString("\n")
	}
	return b.String()
}
