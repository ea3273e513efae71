package schema

import (
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
)

// Nested returns the problems of a valid file in places that its schema does not check: arguments of
// operations and options of entities. A misspelt key there, such as an assertion in a callback, would
// have no effect. The newest version applies, whatever the file declares.
func Nested(root *source.Value) []Problem {
	return explain(walk{declared: newest, granted: unlisted}, root)
}

// Options of both operations and entities ("Common Options").
var (
	readConcern    = key("readConcern", documentOf("readConcern", key("level", anything{})))
	readPreference = key("readPreference",
		documentOf("readPreference", keys("mode", "tagSets", "maxStalenessSeconds", "hedge")...))
	writeConcern = key("writeConcern", documentOf("writeConcern", keys("journal", "w", "wtimeoutMS")...))
)

// sessionOptions are the options of Causal Consistency, Snapshot Reads, Transactions and Client Side Operations
// Timeout.
var sessionOptions = documentOf("sessionOptions", append(
	keys("causalConsistency", "defaultTimeoutMS", "snapshot", "snapshotTime"),
	key("defaultTransactionOptions", documentOf("defaultTransactionOptions", append(
		keys("maxCommitTimeMS", "timeoutMS"), readConcern, readPreference, writeConcern)...,
	)),
)...)

// bucketOptions are the options of GridFS, "Configurable GridFSBucket class".
var bucketOptions = documentOf("bucketOptions", append(
	keys("bucketName", "chunkSizeBytes", "disableMD5", "timeoutMS"), readConcern, readPreference, writeConcern)...,
)

// arguments are the shapes of operations' arguments.
var arguments = dependency{key: "arguments", sibling: "name", deep: true, otherwise: argumentsOf(),
	shapes: map[string]shape{
		"createEntities":   argumentsOf(key("entities", someOf(reference("entity")))),
		"runOnThread":      argumentsOf(key("operation", reference("operation"))),
		"loop":             argumentsOf(key("operations", listOf(reference("operation")))),
		"withTransaction":  argumentsOf(key("callback", listOf(reference("operation")))),
		"waitForEvent":     argumentsOf(key("event", anyEvent{})),
		"assertEventCount": argumentsOf(key("event", anyEvent{})),
		"assertSessionTransactionState": argumentsOf(key("state",
			oneOf("none", "starting", "in_progress", "committed", "aborted"))),
		"assertTopologyType": argumentsOf(key("topologyType", topologyType)),
		"bulkWrite":          argumentsOf(writeModels("bulkWrite")),
		"clientBulkWrite":    argumentsOf(writeModels("clientBulkWrite")),
	}}

func argumentsOf(keys ...field) object {
	return objectOf("", append(keys, readConcern, readPreference, writeConcern)...).with(anything{})
}

// writeModels is the argument of an operation that contains write models.
func writeModels(operation string) field {
	argument, models := operations.Models(operation)
	model := choiceOf("a write model")
	for _, m := range models {
		body := objectOf("write model " + m.Name)
		for _, a := range m.Arguments {
			body.fields = append(body.fields, field{name: a.Name, shape: anything{}, mandatory: a.Required})
		}
		model.fields = append(model.fields, key(m.Name, body))
	}
	return key(argument, listOf(model))
}

// anyEvent is the shape of an event of any eventType.
type anyEvent struct{ anything }

func (anyEvent) explain(w walk, v *source.Value) {
	for _, name := range [...]string{"expectedCommandEvent", "expectedCmapEvent", "expectedSdamEvent"} {
		o := format[name].(object)
		for _, f := range o.fields {
			if v.Get(f.name) != nil {
				o.explain(w, v)
				return
			}
		}
	}
	w.at(v.Position, "must have exactly one key, an event type")
}
