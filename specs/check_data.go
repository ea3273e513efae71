package specs

import (
	"errors"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
)

const placeholder = "$$placeholder"

// checkValues checks all values of a file except _yamlAnchors: test runners must not use it.
//
// Extended JSON: a document with the key of a type wrapper must be a valid one. Only the innermost
// invalid value is reported.
//
// Special Placeholder Value: $$placeholder is an error in an unexpected context.
func (i *inspection) checkValues() {
	for _, top := range i.suite.Root.Fields {
		if top.Key == "_yamlAnchors" {
			continue
		}
		walk(place{top.Value, top.Key}, func(p place) bool {
			if f := p.Field(placeholder); f != nil && !strings.Contains(p.path, ".uriOptions") &&
				!strings.Contains(p.path, ".kmsProviders") {
				i.reportAt("placeholder", f.KeyPosition, p.path+"."+f.Key, "%s is only allowed in uriOptions and kmsProviders",
					placeholder)
			}
			if p.Kind == source.Array || p.Kind == source.Document && !p.ExtendedScalar() {
				return true
			}
			var e *source.Error
			if _, err := p.BSON(); errors.As(err, &e) {
				i.reportAt("extended-json", e.Position, p.path, "%s", e.Message)
			}
			return false
		})
	}
}

// checkCollectionData checks initialData or an outcome.
func (i *inspection) checkCollectionData(list place) {
	seen := map[string]bool{}
	list.each(func(data place) {
		i.checkName(data.get("databaseName"))
		i.checkName(data.get("collectionName"))
		name := data.Value.Get("databaseName").Text() + "." + data.Value.Get("collectionName").Text()
		if seen[name] {
			i.report("collection-data", data, "this list has %s twice", name)
		}
		seen[name] = true
		ids := map[string]bool{}
		data.get("documents").each(func(document place) {
			id, err := document.Value.Get("_id").BSON()
			if err != nil || id.Type == 0 {
				return
			}
			key := indexKey(id)
			if ids[key] {
				i.report("collection-data", document.get("_id"), "two documents of %s have this _id", name)
			}
			ids[key] = true
		})
	})
}
