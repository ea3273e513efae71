package runner

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/operations"
)

// lacking names the first thing that a test needs and that the engine says it
// lacks, "" if there is nothing. A test that needs what the format itself does
// not know runs, and fails.
func lacking(s *specs.Suite, t *specs.Test, about engine.Description) string {
	o := outlineOf(s, t)
	for _, kind := range o.kinds {
		if kind == operations.ClientEncryption && !slices.Contains(about.Features, engine.FeatureEncryption) {
			return "the engine does not serve clientEncryption entities"
		}
	}
	for _, op := range o.operations {
		if row, known := o.row(op); known && row.Kind != operations.TestRunner && !about.Serves(string(row.Kind), op.Name) {
			return fmt.Sprintf("the engine does not serve %s.%s", row.Kind, op.Name)
		}
	}
	if len(t.ExpectLogMessages) > 0 && !slices.Contains(about.Features, engine.FeatureLogging) {
		return "the engine does not provide log messages"
	}
	if len(t.ExpectTracing) > 0 {
		return "the engine does not provide tracing spans"
	}
	return ""
}

// incompatible reports a file that is newer than the engine: its tests fail,
// since a skip would hide them ("Executing a Test File").
func incompatible(s *specs.Suite, about engine.Description) *result.Mismatch {
	highest, err := specs.ParseVersion(about.SchemaVersion)
	if err != nil || s.SchemaVersion.Compare(highest) <= 0 {
		return nil
	}
	return &result.Mismatch{Path: "schemaVersion", Position: s.Root.Get("schemaVersion").Position,
		Message: "the file is newer than the engine", Want: "up to " + highest.String(), Got: s.SchemaVersion.String()}
}

// outline is what a test will do, as far as that is known before it runs.
type outline struct {
	operations []specs.Operation          // in order, those of threads and callbacks after the one that holds them
	kinds      map[string]operations.Kind // of entities, by name
	sessions   map[string]string          // names of clients, by those of their sessions
}

func outlineOf(s *specs.Suite, t *specs.Test) outline {
	o := outline{everyOperation(t.Operations), map[string]operations.Kind{testRunner: operations.TestRunner}, make(map[string]string)}
	define := func(list []specs.Entity) {
		for _, e := range list {
			o.kinds[e.ID] = operations.Kind(e.Kind)
			if o.kinds[e.ID] == operations.Session {
				o.sessions[e.ID] = e.Value.Get("client").Text()
			}
		}
	}
	define(s.CreateEntities)
	for _, op := range o.operations {
		if op.Object == testRunner && op.Name == "createEntities" {
			define(parseEntities(op.Arguments.Get("entities")))
		}
		if row, _ := o.row(op); op.SaveResultAsEntity != "" && row.Result == operations.NewCursor {
			o.kinds[op.SaveResultAsEntity] = operations.Cursor
		}
	}
	return o
}

func (o outline) row(op specs.Operation) (operations.Operation, bool) {
	return operations.Lookup(o.kinds[op.Object], op.Name)
}

// setsFailPoints reports whether the test sets fail points through a client.
func (o outline) setsFailPoints(client string) bool {
	return slices.ContainsFunc(o.operations, func(op specs.Operation) bool {
		return op.Object == testRunner && (op.Name == "failPoint" && op.Arguments.Get("client").Text() == client ||
			op.Name == "targetedFailPoint" && o.sessions[op.Arguments.Get("session").Text()] == client)
	})
}

// needsDistinct reports whether the test calls distinct and uses transactions
// ("StaleDbVersion Errors on Sharded Clusters").
func (o outline) needsDistinct() bool {
	calls := func(names ...string) bool {
		return slices.ContainsFunc(o.operations, func(op specs.Operation) bool { return slices.Contains(names, op.Name) })
	}
	return calls("distinct") && calls("startTransaction", "withTransaction")
}

// everyOperation lists operations in order, those of threads and callbacks
// after the one that holds them.
func everyOperation(ops []specs.Operation) []specs.Operation {
	var all []specs.Operation
	for _, op := range ops {
		all = append(all, op)
		if v := op.Arguments.Get("operation"); op.Object == testRunner && op.Name == "runOnThread" && v != nil {
			all = append(all, everyOperation([]specs.Operation{specs.DecodeOperation(v)})...)
		}
		if op.Name == "withTransaction" {
			all = append(all, everyOperation(parseOperations(op.Arguments.Get("callback")))...)
		}
	}
	return all
}

func parseOperations(v *source.Value) []specs.Operation {
	var ops []specs.Operation
	for _, item := range v.Elements() {
		ops = append(ops, specs.DecodeOperation(item))
	}
	return ops
}

// parseEntities reads an array of entity documents inside of arguments.
func parseEntities(v *source.Value) []specs.Entity {
	var list []specs.Entity
	for _, item := range v.Elements() {
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

// DropPlan lists, sorted and without repetition, the namespaces
// ("database.collection") that running the suites drops: those of
// initialData. (The enxcol_ collections beside each are dropped too.)
func DropPlan(suites []*specs.Suite) []string {
	var namespaces []string
	for _, s := range suites {
		for _, data := range s.InitialData {
			namespaces = append(namespaces, data.DatabaseName+"."+data.CollectionName)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// FailPoints lists, sorted and without repetition, the fail points that the
// suites set.
func FailPoints(suites []*specs.Suite) []string {
	var names []string
	for _, s := range suites {
		for _, t := range s.Tests {
			for _, op := range everyOperation(t.Operations) {
				if name := op.Arguments.Get("failPoint").Get("configureFailPoint").Text(); op.Object == testRunner && name != "" {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// commandEffects has what is known of commands that runCommand and its cursors
// run. All others can change anything.
var commandEffects = map[string]operations.Effect{
	"ping": operations.Reads, "hello": operations.Reads, "find": operations.Reads, "count": operations.Reads,
	"distinct": operations.Reads, "listCollections": operations.Reads, "listIndexes": operations.Reads,
	"buildInfo": operations.Reads, "dbStats": operations.Reads, "collStats": operations.Reads,
	"configureFailPoint": operations.Reads, // fail points are turned off
	"getParameter":       operations.Reads,

	"insert": operations.Writes, "update": operations.Writes, "delete": operations.Writes, "findAndModify": operations.Writes,
}

// effect is what the operations of a test can leave behind: what their rows
// say, or less with some arguments.
func (o outline) effect() operations.Effect {
	all := operations.Reads
	for _, op := range o.operations {
		row, known := o.row(op)
		if known && row.Effect == operations.Anything {
			row.Effect = effectOf(op.Name, op.Arguments)
		}
		all = all.And(row.Effect)
	}
	return all
}

// effectOf narrows the effect of an operation that can change anything.
func effectOf(name string, arguments *source.Value) operations.Effect {
	switch name {
	case "runCommand", "runCursorCommand", "createCommandCursor":
		if command := arguments.Get("command"); command != nil && len(command.Fields) > 0 {
			return commandEffects[command.Fields[0].Key]
		}
	case "aggregate":
		writes := func(stage *source.Value) bool { return stage.Get("$out") != nil || stage.Get("$merge") != nil }
		if pipeline := arguments.Get("pipeline"); pipeline != nil && !slices.ContainsFunc(pipeline.Items, writes) {
			return operations.Reads
		}
	case "mapReduce":
		if arguments.Get("out").Get("inline") != nil {
			return operations.Reads
		}
	}
	return operations.Anything
}
