package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
)

// TestEveryConstraintHasARow takes the constraints of the newest schema away
// one by one, and expects a row of TestMessages that is valid then: a row
// that violates that constraint and nothing else.
func TestEveryConstraintHasARow(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	text, err := New().JSON(Newest)
	if err != nil {
		t.Fatal(err)
	}
	var rows []any
	for _, r := range constraints() {
		if r.version == Newest {
			rows = append(rows, plain(parse(t, within(r.version, r.where, r.fragment))))
		}
	}
	root, err := readJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	var unproven []string
	takeAway(root, "#", func(constraint string) {
		count++
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text))
		if err != nil {
			t.Fatalf("without %s: %v", constraint, err)
		}
		if !slices.ContainsFunc(rows, func(row any) bool {
			result, err := schema.Validate(gojsonschema.NewRawLoader(row))
			return err == nil && result.Valid()
		}) {
			unproven = append(unproven, constraint)
		}
	})
	if len(unproven) > 0 {
		t.Errorf("%d of %d constraints have no row that violates them alone:\n%s", len(unproven), count, strings.Join(unproven, "\n"))
	}
	t.Logf("%d constraints, each with a row that violates it alone", count)
}

// takeAway calls a function with each constraint below a schema taken away in
// turn.
func takeAway(schema any, path string, without func(constraint string)) {
	s := asMap(schema)
	for _, keyword := range sortedKeys(s) {
		here := path + "/" + keyword
		switch value := s[keyword]; keyword {
		case "type":
			if s["enum"] != nil || s["const"] != nil {
				continue // no value of another type is in the list
			}
			if s["allOf"] != nil || s["oneOf"] != nil {
				continue // what is said of keys refuses what has no keys, too
			}
			if strings.Contains(path, "/oneOf/") || strings.HasSuffix(path, "expectedEventsForClient/properties/events") {
				continue // two say the same; or it is what tells alternatives apart
			}
			fallthrough
		case "minItems", "minProperties", "maxProperties", "pattern", "additionalProperties", "enum", "const":
			if below := asMap(value); below != nil {
				takeAway(below, here, without)
				continue
			}
			if strings.Contains(path, "/oneOf/") && keyword == "const" {
				continue // it is what tells alternatives apart
			}
			if strings.HasSuffix(path, "/eventType") && keyword == "enum" {
				continue // no alternative is for another eventType
			}
			delete(s, keyword)
			without(here)
			s[keyword] = value
		case "required":
			if strings.Contains(path, "/oneOf/") && len(asMap(s["properties"])) > 1 {
				continue
			}
			for i, name := range asList(value) {
				s[keyword] = slices.Delete(slices.Clone(asList(value)), i, i+1)
				without(fmt.Sprintf("%s/%v", here, name))
				s[keyword] = value
			}
		case "allOf":
			for i := range asList(value) {
				s[keyword] = slices.Delete(slices.Clone(asList(value)), i, i+1)
				if len(asList(value)) == 1 {
					delete(s, keyword)
				}
				without(fmt.Sprintf("%s/%d", here, i))
				s[keyword] = value
			}
		case "oneOf":
			for i, branch := range asList(value) {
				takeAway(branch, fmt.Sprintf("%s/%d", here, i), without)
			}
		case "properties", "patternProperties", "definitions":
			for _, name := range sortedKeys(asMap(value)) {
				if below := asMap(value)[name]; below == false {
					asMap(value)[name] = map[string]any{}
					without(here + "/" + name)
					asMap(value)[name] = below
				} else {
					takeAway(below, here+"/"+name, without)
				}
			}
		case "items":
			takeAway(value, here, without)
		case "$ref", "$schema", "title", "deprecated", "not":
		default:
			without("unexpected keyword " + here)
		}
	}
}
