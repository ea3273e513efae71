// Package compose composes the replies of servers, for the embedded deployment and for the proxy: the fields of a
// command, its errors and their labels, in the order of the role and the version of the server.
package compose

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Reply is what a reply consists of.
type Reply struct {
	Facts
	Fields      bson.D       // of the command
	Failure     *fault.Error // nil if it has succeeded
	Concern     any          // the write concern error; nil without one
	ConcernCode int32        // its code
	// Appended is set if a fail point has set the write concern error: a mongos that passes on the reply of its shard
	// appends to it.
	Appended bool
	// Labels of a fail point, or those that SetLabels has set.
	Labels []string
	// Topology returns the topologyVersion of a member of a replica set, nil for other servers.
	Topology func() any
	// Backoff returns the parameter externalClientBaseBackoffMS, or 0.
	Backoff func() int64
	// Times returns the cluster time, the operation time, and what precedes them.
	Times func() bson.D
	After bson.D // what follows the times
}

// part returns a part of a reply.
type part func(*Reply) bson.D

// The orders of a reply: of a mongod, before 5.0, of a mongos, and of a mongos that appends to the reply of its shard.
var (
	mongodSuccess   = []part{fields, concern, ok, labelFields, topology, times, after}
	oldSuccess      = []part{fields, ok, concern, labelFields, topology, times, after}
	mongosSuccess   = []part{fields, concern, labelFields, ok, topology, times, after}
	mongodFailure   = []part{concern, labelFields, topology, fields, failure, times, after}
	mongosFailure   = []part{concern, topology, fields, failure, times, labelFields, after}
	appendedFailure = []part{topology, fields, failure, concern, labelFields, times, after}
)

// Compose returns the reply of a server.
func (r *Reply) Compose() bson.Raw { return r.inOrder(r.order()) }

// Amend returns the fields of another reply, followed by the write concern error and the labels.
func (r *Reply) Amend() bson.Raw {
	if r.Failure != nil {
		return r.inOrder([]part{fields, concern, labelFields})
	}
	return r.inOrder([]part{fields, concern, labelFields, topology})
}

func (r *Reply) order() []part {
	has := version.Of(r.Wire)
	switch succeeded := r.Failure == nil; {
	case succeeded && (r.Appended || !has.ReplyOrder && (!r.Mongos || r.EndsTransaction)):
		return oldSuccess
	case succeeded && r.Mongos:
		return mongosSuccess
	case succeeded:
		return mongodSuccess
	case r.Appended:
		return appendedFailure
	case r.Mongos && len(r.After) == 0: // otherwise it passes on a failure, too
		return mongosFailure
	}
	return mongodFailure
}

func (r *Reply) inOrder(parts []part) bson.Raw {
	var out bson.D
	for _, p := range parts {
		out = append(out, p(r)...)
	}
	return value.Encode(out)
}

func fields(r *Reply) bson.D { return r.Fields }
func times(r *Reply) bson.D  { return r.Times() }
func after(r *Reply) bson.D  { return r.After }
func ok(*Reply) bson.D       { return value.Doc("ok", 1.0) }

func concern(r *Reply) bson.D {
	return value.AddIf(nil, r.Concern != nil, "writeConcernError", r.Concern)
}

func failure(r *Reply) bson.D {
	out := value.Doc("ok", 0.0, "errmsg", r.Failure.Message)
	if r.Failure.Code != 0 {
		out = append(out, Code(r.Failure.Code, r.Wire)...)
	}
	return append(out, r.Failure.Extra...)
}

// Code returns the fields of an error with its code.
func Code(code int32, wire int) bson.D {
	return value.Doc("code", code, "codeName", fault.NameIn(code, wire))
}

// topology returns the topologyVersion, if an error says that the member is not primary.
func topology(r *Reply) bson.D {
	refuses := r.failureIs(fault.NotPrimary) || r.Failure == nil && r.concernIs(fault.NotPrimary)
	if !refuses || !version.Of(r.Wire).TopologyVersion {
		return nil
	}
	at := r.Topology()
	return value.AddIf(nil, at != nil, "topologyVersion", at)
}
