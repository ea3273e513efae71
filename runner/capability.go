package runner

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

// lacking names the first thing that a test needs and the engine says that it
// lacks, or "" if there is nothing. What the format itself does not know is no
// lack of the engine: such a test runs, and fails.
func lacking(s *specs.Suite, t *specs.Test, about engine.Description) string {
	kinds := kindsOf(s, t)
	for _, kind := range kinds {
		if kind == entities.ClientEncryption && !slices.Contains(about.Features, engine.FeatureEncryption) {
			return "the engine does not serve clientEncryption entities"
		}
	}
	for _, op := range everyOperation(t.Operations) {
		kind, known := kinds[op.Object]
		if !known || !knownOperation(kind, op.Name) || about.Serves(string(kind), op.Name) {
			continue
		}
		return fmt.Sprintf("the engine does not serve %s.%s", kind, op.Name)
	}
	if len(t.ExpectLogMessages) > 0 && !slices.Contains(about.Features, engine.FeatureLogging) {
		return "the engine does not give log messages"
	}
	if len(t.ExpectTracing) > 0 {
		return "the engine does not give tracing spans"
	}
	return ""
}

// incompatible tells that a file is newer than the engine: its tests fail, since
// a skip would hide them ("Executing a Test File").
func incompatible(s *specs.Suite, about engine.Description) *result.Mismatch {
	highest, err := specs.ParseVersion(about.SchemaVersion)
	if about.SchemaVersion == "" || err != nil || s.SchemaVersion.Compare(highest) <= 0 {
		return nil
	}
	return &result.Mismatch{Path: "schemaVersion", Position: s.Root.Get("schemaVersion").Position,
		Message: "the file is newer than the engine", Want: "up to " + highest.String(), Got: s.SchemaVersion.String()}
}

// kindsOf tells, without running anything, what kind of entity each name of a
// test stands for.
func kindsOf(s *specs.Suite, t *specs.Test) map[string]entities.Kind {
	kinds := make(map[string]entities.Kind)
	for _, e := range s.CreateEntities {
		kinds[e.ID] = entities.Kind(e.Kind)
	}
	for _, op := range everyOperation(t.Operations) {
		if op.Object == testRunner && op.Name == "createEntities" {
			for _, e := range parseEntities(op.Arguments.Get("entities")) {
				kinds[e.ID] = entities.Kind(e.Kind)
			}
		}
		if op.SaveResultAsEntity != "" && createsCursor(kinds[op.Object], op.Name) {
			kinds[op.SaveResultAsEntity] = entities.Cursor
		}
	}
	return kinds
}

// everyOperation lists operations in order, those of threads and callbacks
// after the one that holds them.
func everyOperation(ops []specs.Operation) []specs.Operation {
	var all []specs.Operation
	for _, op := range ops {
		all = append(all, op)
		all = append(all, everyOperation(nested(op))...)
	}
	return all
}

// nested gives the operations that an operation holds in its arguments.
func nested(op specs.Operation) []specs.Operation {
	if v := op.Arguments.Get("operation"); op.Object == testRunner && op.Name == "runOnThread" && v != nil {
		return []specs.Operation{specs.DecodeOperation(v)}
	}
	if v := op.Arguments.Get("callback"); op.Name == "withTransaction" && v != nil {
		return parseOperations(v)
	}
	return nil
}

func parseOperations(v *source.Value) []specs.Operation {
	var ops []specs.Operation
	for _, item := range v.Items {
		ops = append(ops, specs.DecodeOperation(item))
	}
	return ops
}

// parseEntities reads an array of entity documents inside of arguments.
func parseEntities(v *source.Value) []specs.Entity {
	if v == nil {
		return nil
	}
	var list []specs.Entity
	for _, item := range v.Items {
		list = append(list, specs.Entities(item)...)
	}
	return list
}

// needsScripts reports whether a test makes the servers execute JavaScript. A
// mapReduce that expects an error gets it from a fail point.
func needsScripts(t *specs.Test) bool {
	return slices.ContainsFunc(everyOperation(t.Operations), func(op specs.Operation) bool {
		return op.Name == "mapReduce" && op.ExpectError == nil || hasScript(op.Arguments)
	})
}

func hasScript(v *source.Value) bool {
	return v != nil && (slices.ContainsFunc(v.Items, hasScript) || slices.ContainsFunc(v.Fields, func(f source.Field) bool {
		return f.Key == "$where" || f.Key == "$function" || f.Key == "$accumulator" || hasScript(f.Value)
	}))
}

// textOf gives a string of a suite, "" if it is none.
func textOf(v *source.Value) string {
	if v == nil || v.Kind != source.String {
		return ""
	}
	return v.String
}
