package runner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// Missing returns what a test requires and the engine does not support: operations such as "collection.find", with what
// the driver lacks for them, features, and a newer schema version. Only the last makes the test fail.
func Missing(s *specs.Suite, t *specs.Test, about engine.Description) (names []string) {
	need := func(met bool, name string) {
		if !met && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	need(incompatible(s, about) == nil, "a newer schema version")
	for _, e := range t.Entities {
		need(e.Kind != entities.ClientEncryption || slices.Contains(about.Features, engine.FeatureEncryption),
			"clientEncryption entities")
	}
	for _, o := range t.Steps {
		name := fmt.Sprintf("%s.%s", o.Kind, o.Name)
		if why := about.Lacks[name]; why != "" {
			name += ": " + why
		}
		need(!o.Known || o.Kind == entities.TestRunner || about.Supports(string(o.Kind), o.Name), name)
	}
	need(len(t.ExpectLogMessages) == 0 || slices.Contains(about.Features, engine.FeatureLogging), "log messages")
	need(len(t.ExpectTracing) == 0 || slices.Contains(about.Features, engine.FeatureTracing), "tracing spans")
	for _, m := range monitors(t) {
		need(about.Logs(m), string(m)+" events")
	}
	return names
}

// monitors returns the monitors whose events a test requires.
func monitors(t *specs.Test) (all []result.Monitor) {
	for _, e := range t.ExpectEvents {
		all = append(all, result.Monitor(cmp.Or(e.Get("eventType").Text(), string(result.MonitorCommand))))
	}
	for _, e := range t.Entities {
		if e.Value.Get("awaitMinPoolSizeMS") != nil {
			all = append(all, result.MonitorCMAP)
		}
	}
	for _, s := range t.Steps {
		switch event := s.Arguments.Get("event"); {
		case s.Kind != entities.TestRunner:
		case s.Name == "assertNumberConnectionsCheckedOut":
			all = append(all, result.MonitorCMAP)
		case s.Name == "waitForPrimaryChange":
			all = append(all, result.MonitorSDAM)
		case event != nil && len(event.Fields) > 0: // waitForEvent, assertEventCount
			all = append(all, result.EventType(event.Fields[0].Key).Monitor())
		}
	}
	return all
}

// incompatible returns a mismatch if a file is newer than the engine. Its tests fail, since a skip would hide them
// ("Executing a Test File").
func incompatible(s *specs.Suite, about engine.Description) *result.Mismatch {
	highest, err := specs.ParseVersion(about.SchemaVersion)
	if err != nil || s.SchemaVersion.Compare(highest) <= 0 {
		return nil
	}
	return &result.Mismatch{Path: "schemaVersion", Position: s.Root.Get("schemaVersion").Position,
		Message: "the file is newer than the engine", Want: "up to " + highest.String(), Got: s.SchemaVersion.String()}
}

// setsFailPoints reports whether a test sets fail points through a client or one of its sessions.
func setsFailPoints(t *specs.Test, client string) bool {
	var sessions []string
	for _, e := range t.Entities {
		if e.Kind == entities.Session && e.Value.Get("client").Text() == client {
			sessions = append(sessions, e.ID)
		}
	}
	return slices.ContainsFunc(t.Steps, func(s specs.Step) bool {
		return s.Kind == entities.TestRunner && (s.Name == "failPoint" && s.Arguments.Get("client").Text() == client ||
			s.Name == "targetedFailPoint" && slices.Contains(sessions, s.Arguments.Get("session").Text()))
	})
}

// needsDistinct reports whether a test calls distinct and uses transactions
// ("StaleDbVersion Errors on Sharded Clusters").
func needsDistinct(t *specs.Test) bool {
	return calls(t, "distinct") && calls(t, "startTransaction", "withTransaction")
}

// calls reports whether a test performs one of some operations.
func calls(t *specs.Test, names ...string) bool {
	return slices.ContainsFunc(t.Steps, func(s specs.Step) bool { return slices.Contains(names, s.Name) })
}

// needsFeature reports whether a test requires a feature of the servers.
func needsFeature(t *specs.Test, f deployment.Feature) bool {
	switch f {
	case deployment.JavaScript:
		return needsScripts(t)
	case deployment.Sessions:
		return slices.ContainsFunc(t.Entities, func(e specs.Entity) bool { return e.Kind == entities.Session })
	case deployment.Transactions:
		return calls(t, "startTransaction", "withTransaction")
	}
	return false
}

// needsScripts reports whether a test requires server-side JavaScript. A mapReduce that expects an error does not: a
// fail point causes the error.
func needsScripts(t *specs.Test) bool {
	return slices.ContainsFunc(t.Steps, func(s specs.Step) bool {
		return s.Name == "mapReduce" && s.ExpectError == nil || mentions(s.Arguments, "$where", "$function", "$accumulator")
	})
}

// FailPoints returns the sorted names of the fail points that the suites set.
func FailPoints(suites []*specs.Suite) (names []string) {
	for _, s := range suites {
		for _, t := range s.Tests {
			for _, point := range failPointsOf(t) {
				names = append(names, point.Get("configureFailPoint").Text())
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// failPointsOf returns the fail points that a test sets, as documents.
func failPointsOf(t *specs.Test) (points []*source.Value) {
	for _, step := range t.Steps {
		point := step.Arguments.Get("failPoint")
		if step.Kind == entities.TestRunner && point.Get("configureFailPoint").Text() != "" {
			points = append(points, point)
		}
	}
	return points
}

// commandEffects maps commands of runCommand and its cursors to their effects. Other commands can change anything.
var commandEffects = map[string]operations.Effect{
	"ping": operations.Reads, "hello": operations.Reads, "find": operations.Reads, "count": operations.Reads,
	"distinct": operations.Reads, "listCollections": operations.Reads, "listIndexes": operations.Reads,
	"buildInfo": operations.Reads, "dbStats": operations.Reads, "collStats": operations.Reads,
	"configureFailPoint": operations.Reads, // the runner disables fail points
	"getParameter":       operations.Reads,

	"insert": operations.Writes, "update": operations.Writes, "delete": operations.Writes,
	"findAndModify": operations.Writes,
}

// effectOf returns the combined effect of the operations of a test.
func effectOf(t *specs.Test) operations.Effect {
	all := operations.Reads
	for _, s := range t.Steps {
		effect := s.Row.Effect
		if s.Known && effect == operations.Anything {
			effect = narrowed(s.Name, s.Arguments)
		}
		all = all.And(effect)
	}
	return all
}

// narrowed returns the effect, with specific arguments, of an operation that can change anything.
func narrowed(name string, arguments *source.Value) operations.Effect {
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
