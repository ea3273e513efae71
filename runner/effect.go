package runner

import (
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

// effect is what a test may have done to the deployment, as far as later
// tests are concerned.
type effect uint8

// The effects, each including the ones before.
const (
	effectReads   effect = iota // nothing
	effectWrites                // documents, collections and indexes, which a look shows
	effectUnknown               // what a look may not show
)

// effects lists operations of entities whose effect is known. All others are
// taken to do anything.
var effects = map[string]effect{
	"aggregate":                   effectReads, // less $out and $merge
	"assertCollectionExists":      effectReads,
	"close":                       effectReads,
	"count":                       effectReads,
	"countDocuments":              effectReads,
	"createChangeStream":          effectReads,
	"createFindCursor":            effectReads,
	"distinct":                    effectReads,
	"download":                    effectReads,
	"downloadByName":              effectReads,
	"endSession":                  effectReads,
	"estimatedDocumentCount":      effectReads,
	"find":                        effectReads,
	"findOne":                     effectReads,
	"iterateOnce":                 effectReads,
	"iterateUntilDocumentOrError": effectReads,
	"listCollectionNames":         effectReads,
	"listCollectionObjects":       effectReads,
	"listCollections":             effectReads,
	"listDatabaseNames":           effectReads,
	"listDatabaseObjects":         effectReads,
	"listDatabases":               effectReads,
	"listIndexNames":              effectReads,
	"listIndexes":                 effectReads,
	"startTransaction":            effectReads,

	"abortTransaction":  effectWrites,
	"bulkWrite":         effectWrites,
	"clientBulkWrite":   effectWrites,
	"commitTransaction": effectWrites,
	"createIndex":       effectWrites,
	"delete":            effectWrites,
	"deleteByName":      effectWrites,
	"deleteMany":        effectWrites,
	"deleteOne":         effectWrites,
	"dropIndex":         effectWrites,
	"dropIndexes":       effectWrites,
	"findOneAndDelete":  effectWrites,
	"findOneAndReplace": effectWrites,
	"findOneAndUpdate":  effectWrites,
	"insertMany":        effectWrites,
	"insertOne":         effectWrites,
	"replaceOne":        effectWrites,
	"updateMany":        effectWrites,
	"updateOne":         effectWrites,
	"upload":            effectWrites,
	"uploadWithId":      effectWrites,
	"withTransaction":   effectWrites, // its callback is looked at for itself
}

// readCommands are those that runCommand and its cursors may run without
// effect.
var readCommands = map[string]bool{
	"ping": true, "hello": true, "find": true, "count": true, "distinct": true, "listCollections": true, "listIndexes": true,
	"buildInfo": true, "dbStats": true, "collStats": true, "configureFailPoint": true, "getParameter": true,
}

// effectOf is the greatest effect of a test's operations.
func effectOf(t *specs.Test) effect {
	worst := effectReads
	for _, op := range everyOperation(t.Operations) {
		worst = max(worst, effectOfOperation(op))
	}
	return worst
}

func effectOfOperation(op specs.Operation) effect {
	if op.Object == testRunner {
		return effectReads // fail points are turned off, all else only looks
	}
	switch op.Name {
	case "runCommand", "runCursorCommand", "createCommandCursor":
		if command := op.Arguments.Get("command"); command != nil && len(command.Fields) > 0 && readCommands[command.Fields[0].Key] {
			return effectReads
		}
		return effectUnknown
	case "aggregate":
		if writesOut(op.Arguments.Get("pipeline")) {
			return effectUnknown
		}
	}
	e, known := effects[op.Name]
	if !known {
		return effectUnknown
	}
	return e
}

// writesOut reports whether a pipeline ends in a stage that writes.
func writesOut(pipeline *source.Value) bool {
	if pipeline == nil {
		return false
	}
	for _, stage := range pipeline.Items {
		if stage.Get("$out") != nil || stage.Get("$merge") != nil {
			return true
		}
	}
	return false
}

// remember notes what a test may have done, so that the next one's initial
// data is not trusted more than it deserves.
func (s *site) remember(e effect, clean bool) {
	switch {
	case !clean || e == effectUnknown:
		clear(s.seeded)
	case e == effectWrites:
		for _, seedling := range s.seeded {
			seedling.written = true
		}
	}
}
