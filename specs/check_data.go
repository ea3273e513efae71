package specs

import (
	"errors"
	"fmt"

	"github.com/unified-test-runner/utr/source"
)

// Extended JSON: what has a type wrapper's key must be one. The innermost
// values that are not are reported.
func checkExtendedJSON(i *inspection) {
	i.everywhere(func(p place) bool {
		if p.Kind == source.Array || p.Kind == source.Document && !p.ExtendedScalar() {
			return true
		}
		var e *source.Error
		if _, err := p.BSON(); errors.As(err, &e) {
			i.reportAt(e.Position, p.path, "%s", e.Message)
		}
		return false
	})
}

func (i *inspection) eachCollectionData(visit func(list place)) {
	visit(i.root("initialData"))
	i.eachTest(func(t place) { visit(t.get("outcome")) })
}

func checkCollectionData(i *inspection) {
	i.eachCollectionData(func(list place) {
		seen := map[string]bool{}
		list.each(func(data place) {
			name := data.Value.Get("databaseName").Text() + "." + data.Value.Get("collectionName").Text()
			if seen[name] {
				i.report(data, "%s has its data given twice in this list", name)
			}
			seen[name] = true
			ids := map[string]bool{}
			data.get("documents").each(func(document place) {
				id, err := document.Value.Get("_id").BSON()
				if err != nil || id.Value == nil {
					return
				}
				key := fmt.Sprint(id.Type, id.Value)
				if ids[key] {
					i.report(document.get("_id"), "two documents of %s have this _id", name)
				}
				ids[key] = true
			})
		})
	})
}

func checkDuplicateTests(i *inspection) {
	seen := map[string]source.Position{}
	i.eachTest(func(t place) {
		d := t.get("description")
		if !d.exists() {
			return
		}
		if first, again := seen[d.String]; again {
			i.report(d, "a test in line %d has the same description %q", first.Line, d.String)
			return
		}
		seen[d.String] = d.Position
	})
}

func checkVersionRanges(i *inspection) {
	check := func(list []Requirement, path string) {
		for k, r := range list {
			if r.MinServerVersion != nil && r.MaxServerVersion != nil && r.MinServerVersion.Compare(*r.MaxServerVersion) > 0 {
				i.reportAt(r.Position, fmt.Sprintf("%s[%d]", path, k), "minServerVersion %s is above maxServerVersion %s: no server meets this", r.MinServerVersion, r.MaxServerVersion)
			}
		}
	}
	check(i.suite.Requirements, "runOnRequirements")
	for k, t := range i.suite.Tests {
		check(t.Requirements, fmt.Sprintf("tests[%d].runOnRequirements", k))
	}
}
