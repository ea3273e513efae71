//go:generate env UTR_UPDATE=1 go test -count 1 -run "^(TestDeviationsPage|TestDeviationSuites)$" .

package compare

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed deviations.yml
var deviationsFile []byte

// testedEngine is an engine of the table with the tested driver and version.
type testedEngine struct{ Name, Driver string }

// table has the contents of deviations.yml.
type table struct {
	engines    []testedEngine
	deviations []Deviation
}

// embedded reads deviations.yml on first use, because most commands do not need it.
var embedded = sync.OnceValue(func() table {
	t, err := parseDeviations(deviationsFile)
	if err != nil {
		panic(err)
	}
	return t
})

// tested returns the tested engines in the order of the columns.
func tested() []testedEngine { return embedded().engines }

// Deviations returns the table of decisions in the order of the ids. Callers must not modify it.
func Deviations() []Deviation { return embedded().deviations }

// parseDeviations reads and checks a file such as deviations.yml.
func parseDeviations(data []byte) (t table, err error) {
	var file struct {
		Engines    []testedEngine
		Deviations []yaml.Node
	}
	if err := yaml.Load(data, &file, yaml.WithKnownFields()); err != nil {
		return t, fmt.Errorf("deviations.yml: %w", err)
	}
	t.engines = file.Engines
	for _, row := range file.Deviations {
		var d Deviation
		if err := row.Load(&d, yaml.WithKnownFields()); err != nil {
			return t, fmt.Errorf("deviations.yml: %w", err)
		}
		if problem := t.problem(d); problem != "" {
			return t, fmt.Errorf("deviations.yml: line %d: %s", row.Line, problem)
		}
		t.deviations = append(t.deviations, d)
	}
	return t, nil
}

// problem says what is wrong with the next deviation of the table, "" if nothing is.
func (t table) problem(d Deviation) string {
	if next := fmt.Sprintf("D%d", len(t.deviations)+1); d.ID != next {
		return fmt.Sprintf("the id is %q, not %s", d.ID, next)
	}
	if d.Title == "" || d.Section == "" {
		return d.ID + " has no title or no section"
	}
	if d.Schedule == nil && d.Test == nil {
		return d.ID + " explains nothing: it has neither schedule nor test"
	}
	if (d.Suite != "") != (d.Example.Operation != "") {
		return d.ID + " has only one of suite and example"
	}
	if d.Suite != "" && slices.ContainsFunc(t.deviations, func(other Deviation) bool { return other.Suite == d.Suite }) {
		return "another deviation has the suite " + d.Suite
	}
	named := slices.Concat(d.Engines, slices.Collect(maps.Keys(d.Fixed)), slices.Collect(maps.Keys(d.Code)))
	for _, name := range named {
		if !slices.ContainsFunc(t.engines, func(e testedEngine) bool { return e.Name == name }) {
			return fmt.Sprintf("%s: unknown engine %q", d.ID, name)
		}
		if _, has := d.Code[name]; has && !slices.Contains(d.Engines, name) {
			return fmt.Sprintf("%s has code of %s, which does not differ", d.ID, name)
		}
	}
	return ""
}
