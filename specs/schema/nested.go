package schema

import (
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
)

// Nested gives what is wrong in a valid file where its schema does not look: in
// the arguments of operations, and in the options of entities. A key that is
// misspelt there, an assertion in a callback for example, would go unnoticed.
// The newest version applies, whatever the file declares.
func Nested(root *source.Value) []Problem {
	return explain(walk{declared: newest, granted: unlisted}, root)
}

// The options that operations and entities share ("Common Options").
var (
	readConcern    = key("readConcern", documentOf("readConcern", key("level", anything{})))
	readPreference = key("readPreference", documentOf("readPreference", keys("mode", "tagSets", "maxStalenessSeconds", "hedge")...))
	writeConcern   = key("writeConcern", documentOf("writeConcern", keys("journal", "w", "wtimeoutMS")...))
)

// sessionOptions follow Causal Consistency, Snapshot Reads, Transactions and
// Client Side Operations Timeout.
var sessionOptions = documentOf("sessionOptions", append(
	keys("causalConsistency", "defaultTimeoutMS", "snapshot", "snapshotTime"),
	key("defaultTransactionOptions", documentOf("defaultTransactionOptions", append(
		keys("maxCommitTimeMS", "timeoutMS"), readConcern, readPreference, writeConcern)...,
	)),
)...)

// bucketOptions follow GridFS, "Configurable GridFSBucket class".
var bucketOptions = documentOf("bucketOptions", append(
	keys("bucketName", "chunkSizeBytes", "disableMD5", "timeoutMS"), readConcern, readPreference, writeConcern)...,
)

// arguments are what is known of the arguments of all operations.
var arguments = dependency{key: "arguments", sibling: "name", deep: true, otherwise: argumentsOf(), shapes: map[string]shape{
	"createEntities":                argumentsOf(key("entities", someOf(reference("entity")))),
	"runOnThread":                   argumentsOf(key("operation", reference("operation"))),
	"loop":                          argumentsOf(key("operations", listOf(reference("operation")))),
	"withTransaction":               argumentsOf(key("callback", listOf(reference("operation")))),
	"waitForEvent":                  argumentsOf(key("event", anyEvent{})),
	"assertEventCount":              argumentsOf(key("event", anyEvent{})),
	"assertSessionTransactionState": argumentsOf(key("state", oneOf("none", "starting", "in_progress", "committed", "aborted"))),
	"assertTopologyType":            argumentsOf(key("topologyType", topologyType)),
	"bulkWrite":                     argumentsOf(writeModels("bulkWrite")),
	"clientBulkWrite":               argumentsOf(writeModels("clientBulkWrite")),
}}

func argumentsOf(keys ...field) object {
	return objectOf("", append(keys, readConcern, readPreference, writeConcern)...).with(anything{})
}

// writeModels is the argument in which an operation takes write models.
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

// anyEvent is the shape of an event whose type is known by its key alone.
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
	w.at(v.Position, "must have one key, the type of an event")
}
