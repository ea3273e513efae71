package specs

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// Traits are what a test does and expects. Each list is sorted and has nothing twice.
type Traits struct {
	Operations   []string `json:"operations"`             // kind.name, such as collection.find
	FailCommands []string `json:"failCommands,omitempty"` // that its fail points fail
	Codes        []int64  `json:"codes,omitempty"`        // of its fail points and expected errors
	Labels       []string `json:"labels,omitempty"`       // error labels of both, be they expected or excluded
	Events       []string `json:"events,omitempty"`       // types that it expects, counts or waits for
	Operators    []string `json:"operators,omitempty"`    // special operators, such as $$exists
}

// CodeNames gives the codes as text.
func (t Traits) CodeNames() (names []string) {
	for _, code := range t.Codes {
		names = append(names, strconv.FormatInt(code, 10))
	}
	return names
}

// traits collects what a walk meets: a set for each field of Traits.
type traits struct {
	operations, failCommands, labels, events, operators map[string]bool
	codes                                               map[int64]bool
}

// Traits gives those of the test at an index.
func (s *Suite) Traits(index int) Traits {
	t := traits{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[int64]bool{}}
	for _, step := range s.Tests[index].Steps {
		t.operations[strings.TrimPrefix(string(step.Kind)+"."+step.Name, ".")] = true
	}
	walk(place{s.Root.Get("tests").Items[index], ""}, t.visit)
	sorted := func(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
	return Traits{
		sorted(t.operations), sorted(t.failCommands), slices.Sorted(maps.Keys(t.codes)),
		sorted(t.labels), sorted(t.events), sorted(t.operators),
	}
}

func (t traits) visit(p place) bool {
	for _, f := range p.Fields {
		switch {
		case strings.HasPrefix(f.Key, "$$"):
			t.operators[f.Key] = true
		case strings.HasSuffix(f.Key, "Event") && f.Value.Kind == source.Document:
			t.events[f.Key] = true
		}
		switch f.Key {
		case "errorCode":
			t.code(f.Value)
		case "writeConcernError":
			t.code(f.Value.Get("code"))
		case "errorLabels", "errorLabelsContain", "errorLabelsOmit":
			add(t.labels, f.Value)
		case "failCommands":
			add(t.failCommands, f.Value)
		}
	}
	return true
}

func (t traits) code(v *source.Value) {
	if v != nil && v.Kind == source.Int {
		t.codes[v.Int] = true
	}
}

func add(to map[string]bool, list *source.Value) {
	for _, item := range list.Elements() {
		to[item.Text()] = true
	}
}
