package runner

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
)

// testRunner is the object of special test operations.
const testRunner = "testRunner"

// knownOperation reports whether the format knows an operation of entities.
func knownOperation(kind entities.Kind, name string) bool {
	_, known := operations.Lookup(operations.Kind(kind), name)
	return known
}

// createsCursor reports whether an operation's result is a cursor entity.
func createsCursor(kind entities.Kind, name string) bool {
	row, known := operations.Lookup(operations.Kind(kind), name)
	return known && row.Result == operations.NewCursor
}

// made gives the kinds of entities that operations with a result of this shape
// create.
var made = map[operations.Shape]entities.Kind{
	operations.NewCursor:     entities.Cursor,
	operations.NewCollection: entities.Collection,
}

// shapes gives the matchers' word for what an operation returns.
var shapes = map[operations.Shape]matchers.Shape{
	operations.Nothing:       matchers.Nested,
	operations.Value:         matchers.Nested,
	operations.RootDocument:  matchers.RootDocument,
	operations.RootDocuments: matchers.RootDocuments,
	operations.NewCursor:     matchers.Nested,
	operations.NewCollection: matchers.Nested,
}

// aggregates lists the operations that raise a BulkWriteException
// ("bulkWrite").
var aggregates = map[string]bool{"bulkWrite": true, "insertMany": true}

// badArguments gives what is wrong with the names of arguments: one that the
// operation does not know, or a required one that is not there.
func badArguments(path string, op *source.Value, at source.Position, name string, row []operations.Argument) *fault {
	var faults fault
	if op != nil {
		for _, f := range op.Fields {
			if !slices.ContainsFunc(row, func(a operations.Argument) bool { return a.Name == f.Key }) {
				faults.mismatches = append(faults.mismatches, failf(path+".arguments."+f.Key, f.KeyPosition,
					"unsupported argument: %s does not take %q", name, f.Key).mismatches...)
			}
		}
	}
	for _, a := range row {
		if a.Required && op.Get(a.Name) == nil {
			faults.mismatches = append(faults.mismatches, failf(path+".arguments", at,
				"missing argument: %s needs %q", name, a.Name).mismatches...)
		}
	}
	return failed(faults.mismatches)
}

// placeholderIn finds a $$placeholder that nobody replaces ("$$placeholder").
func placeholderIn(path string, v *source.Value) *fault {
	if v == nil {
		return nil
	}
	for _, f := range v.Fields {
		if f.Key == placeholder {
			return failf(path, f.KeyPosition, "$$placeholder is used where no value can be put in its place")
		}
		if found := placeholderIn(path+"."+f.Key, f.Value); found != nil {
			return found
		}
	}
	for i, item := range v.Items {
		if found := placeholderIn(fmt.Sprintf("%s[%d]", path, i), item); found != nil {
			return found
		}
	}
	return nil
}

const placeholder = "$$placeholder"
