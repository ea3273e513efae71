package runner

import (
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/operations"
)

// commandEffects has what is known of commands that runCommand and its cursors
// run. All others can do anything.
var commandEffects = map[string]operations.Effect{
	"ping": operations.Reads, "hello": operations.Reads, "find": operations.Reads, "count": operations.Reads,
	"distinct": operations.Reads, "listCollections": operations.Reads, "listIndexes": operations.Reads,
	"buildInfo": operations.Reads, "dbStats": operations.Reads, "collStats": operations.Reads,
	"configureFailPoint": operations.Reads, // fail points are turned off
	"getParameter":       operations.Reads,

	"insert": operations.Writes, "update": operations.Writes, "delete": operations.Writes, "findAndModify": operations.Writes,
}

// narrowed has operations that can do anything, but less with some arguments.
var narrowed = map[string]func(arguments *source.Value) operations.Effect{
	"aggregate":           pipelineEffect,
	"createCommandCursor": commandEffect,
	"mapReduce":           outEffect,
	"runCommand":          commandEffect,
	"runCursorCommand":    commandEffect,
}

func commandEffect(arguments *source.Value) operations.Effect {
	if command := arguments.Get("command"); command != nil && len(command.Fields) > 0 {
		return commandEffects[command.Fields[0].Key]
	}
	return operations.Anything
}

func pipelineEffect(arguments *source.Value) operations.Effect {
	pipeline := arguments.Get("pipeline")
	if pipeline == nil {
		return operations.Anything
	}
	for _, stage := range pipeline.Items {
		if stage.Get("$out") != nil || stage.Get("$merge") != nil {
			return operations.Anything
		}
	}
	return operations.Reads
}

func outEffect(arguments *source.Value) operations.Effect {
	if arguments.Get("out").Get("inline") != nil {
		return operations.Reads
	}
	return operations.Anything
}

// effectOf is what the operations of a test can leave behind.
func effectOf(s *specs.Suite, t *specs.Test) operations.Effect {
	kinds := kindsOf(s, t)
	all := operations.Reads
	for _, op := range everyOperation(t.Operations) {
		row, known := rowOf(kinds, op)
		if narrow := narrowed[op.Name]; known && narrow != nil && row.Effect == operations.Anything {
			row.Effect = narrow(op.Arguments)
		}
		all = all.And(row.Effect)
	}
	return all
}

func rowOf(kinds map[string]entities.Kind, op specs.Operation) (operations.Operation, bool) {
	kind := operations.Kind(kinds[op.Object])
	if op.Object == testRunner {
		kind = operations.TestRunner
	}
	return operations.Lookup(kind, op.Name)
}

// remember notes what a test may have left behind, so that the next one's
// initial data is not trusted more than it deserves.
func (s *site) remember(e operations.Effect) {
	switch e {
	case operations.Anything:
		clear(s.seeded)
	case operations.Writes:
		for _, seedling := range s.seeded {
			seedling.written = true
		}
	}
}
