package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func wrongType(field string, given bson.RawValue, expected string) error {
	return fault.Errorf(fault.TypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected type '%s'", field, value.RawTypeName(given), expected)
}

// marshal marshals a document that this package created, which cannot fail.
func marshal(doc bson.D) bson.Raw {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return raw
}

// firstKey returns the name of a command, "" if the document is empty.
func firstKey(doc bson.Raw) string {
	e, err := doc.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

// compose returns the complete reply to a command: fields, ok, the error, labels, topologyVersion and times, in the
// order of mongod or mongos.
func (x *exchange) compose(fields bson.D, failure *fault.Error) bson.Raw {
	mongos := x.view.isMongos()
	labels, concern, last := x.labelFields(), x.concernFields(), x.request.AfterOK
	// A mongos that passes on the reply of its shard appends to it. Before 5.0 a mongod appended, too.
	passed := mongos && x.row != nil && x.row.Statements == ""
	late := x.told && passed
	appended := late || !x.view.Has.ReplyOrder && (!mongos || x.endsTransaction())
	var reply bson.D
	switch {
	case failure == nil && appended:
		reply = slices.Concat(fields, outcome(1), concern, labels)
	case failure == nil && mongos:
		reply = slices.Concat(fields, concern, labels, outcome(1))
	case failure == nil:
		reply = slices.Concat(fields, concern, outcome(1), labels)
	case !mongos:
		reply = slices.Concat(concern, labels, x.failed(fields, failure), failure.Extra)
	case late:
		reply = slices.Concat(x.failed(fields, failure), failure.Extra, concern, labels)
	case len(last) > 0: // it passes on a failure, too
		reply = slices.Concat(concern, labels, x.failed(fields, failure), failure.Extra)
	default:
		reply, last = slices.Concat(concern, x.failed(fields, failure), failure.Extra), slices.Concat(labels, last)
	}
	if failure == nil {
		reply = append(reply, x.notPrimaryFields(x.concern)...)
	}
	if x.row != nil && x.answered == nil {
		reply = append(reply, x.replData()...)
	}
	if x.view.hasClock() && !x.noTimes {
		now := x.conn.server.now()
		reply = append(reply,
			bson.E{Key: "$clusterTime", Value: bson.D{
				{Key: "clusterTime", Value: x.conn.server.clusterTime(bson.Timestamp{})},
				{Key: "signature", Value: bson.D{
					{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}},
					{Key: "keyId", Value: int64(0)},
				}},
			}},
			bson.E{Key: "operationTime", Value: now})
	}
	return marshal(append(reply, last...))
}

// labelFields returns the labels of an error, and the base backoff of an overload error (Client Backpressure, "Overload
// retry policy").
func (x *exchange) labelFields() bson.D {
	if len(x.labels) == 0 {
		return nil
	}
	base := int64(x.conn.server.params.number(baseBackoff))
	overloaded := base > 0 && slices.Contains(x.labels, "SystemOverloadedError")
	return value.AddIf(bson.D{{Key: "errorLabels", Value: x.labels}}, overloaded, "baseBackoffMS", base)
}

// concernFields returns the write concern error.
func (x *exchange) concernFields() bson.D {
	return value.AddIf(nil, x.writeConcernError != nil, "writeConcernError", x.writeConcernError)
}

func outcome(ok float64) bson.D { return bson.D{{Key: "ok", Value: ok}} }

func (x *exchange) failed(fields bson.D, failure *fault.Error) bson.D {
	reply := slices.Concat(x.notPrimaryFields(failure.Code), fields, outcome(0),
		bson.D{{Key: "errmsg", Value: failure.Message}})
	if failure.Code != 0 {
		reply = append(reply, x.codeFields(failure.Code)...)
	}
	return reply
}

func (x *exchange) codeFields(code int32) bson.D {
	return bson.D{{Key: "code", Value: code}, {Key: "codeName", Value: fault.NameIn(code, x.view.Wire)}}
}

// notPrimaryFields returns the topologyVersion, if the error tells the client that the member is not primary.
func (x *exchange) notPrimaryFields(code int32) bson.D {
	if !x.view.isMember() || !x.view.Has.TopologyVersion || !fault.NotPrimary.In(code, x.view.Wire) {
		return nil
	}
	return bson.D{{Key: "topologyVersion", Value: x.view.topologyVersion()}}
}

func (s *Server) now() bson.Timestamp { return s.cluster.Backend.OperationTime() }

// clusterTime advances the cluster time to seen, if that is later, and returns it.
func (s *Server) clusterTime(seen bson.Timestamp) bson.Timestamp {
	return s.cluster.Backend.ClusterTime(seen)
}

func (v view) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: v.processID}, {Key: "counter", Value: v.version}}
}
