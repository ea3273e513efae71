package specs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
)

// Traits are what a test does and expects. Each list is sorted and has no duplicates.
type Traits struct {
	Operations   []string `json:"operations"`             // kind.name, such as collection.find
	FailCommands []string `json:"failCommands,omitempty"` // commands of its fail points
	Codes        []int64  `json:"codes,omitempty"`        // error codes of its fail points and expected errors
	Labels       []string `json:"labels,omitempty"`       // error labels of both, including omitted ones
	Events       []string `json:"events,omitempty"`       // event types that it expects, counts or waits for
	Operators    []string `json:"operators,omitempty"`    // special operators, such as $$exists
	Spans        []string `json:"spans,omitempty"`        // "operation NAME", "command NAME", or another name
}

// CodeNames returns the codes as text.
func (t Traits) CodeNames() (names []string) {
	for _, code := range t.Codes {
		names = append(names, strconv.FormatInt(code, 10))
	}
	return names
}

// Traits returns the traits of the test at an index.
func (s *Suite) Traits(index int) Traits {
	var t Traits
	for _, step := range s.Tests[index].Steps {
		t.Operations = append(t.Operations, strings.TrimPrefix(string(step.Kind)+"."+step.Name, "."))
	}
	walk(place{s.Root.Get("tests").Items[index], ""}, t.visit)
	for _, list := range []*[]string{&t.Operations, &t.FailCommands, &t.Labels, &t.Events, &t.Operators, &t.Spans} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	slices.Sort(t.Codes)
	t.Codes = slices.Compact(t.Codes)
	return t
}

// visit adds the traits at one place of a test.
func (t *Traits) visit(p place) bool {
	for _, f := range p.Fields {
		switch {
		case strings.HasPrefix(f.Key, "$$"):
			t.Operators = append(t.Operators, f.Key)
		case strings.HasSuffix(f.Key, "Event") && f.Value.Kind == source.Document:
			t.Events = append(t.Events, f.Key)
		}
		switch f.Key {
		case "errorCode":
			t.code(f.Value)
		case "writeConcernError":
			t.code(f.Value.Get("code"))
		case "errorLabels", "errorLabelsContain", "errorLabelsOmit":
			t.Labels = append(t.Labels, decodeEach(f.Value, (*source.Value).Text)...)
		case "attributes":
			if strings.HasPrefix(p.path, ".expectTracingMessages") {
				t.Spans = append(t.Spans, spanOf(p.Value))
			}
		case "failCommands":
			t.FailCommands = append(t.FailCommands, decodeEach(f.Value, (*source.Value).Text)...)
		}
	}
	return true
}

// spanOf returns what an expected span stands for, as in Traits.Spans.
func spanOf(span *source.Value) string {
	attributes := span.Get("attributes")
	for _, of := range []string{"operation", "command"} {
		if name := attributes.Get("db." + of + ".name"); name != nil && name.Kind == source.String {
			return of + " " + name.Text()
		}
	}
	return span.Get("name").Text()
}

func (t *Traits) code(v *source.Value) {
	if v != nil && v.Kind == source.Int {
		t.Codes = append(t.Codes, v.Int)
	}
}
