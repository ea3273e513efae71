package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
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
	var reply bson.D
	last := x.request.AfterOK
	switch {
	case failure == nil:
		reply = x.succeeded(fields)
	case x.view.Role != commands.Mongos:
		reply = slices.Concat(x.labelFields(), x.failed(fields, failure), failure.Extra)
	case x.endsTransaction(): // a mongos appends to the reply of its shard
		reply, last = slices.Concat(x.labelFields(), x.failed(fields, failure)), slices.Concat(last, failure.Extra)
	default:
		reply, last = append(x.failed(fields, failure), failure.Extra...), slices.Concat(x.labelFields(), last)
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

func (x *exchange) succeeded(fields bson.D) bson.D {
	ok := bson.D{{Key: "ok", Value: 1.0}}
	if x.writeConcernError == nil {
		return append(fields, ok...)
	}
	concern := bson.D{{Key: "writeConcernError", Value: x.writeConcernError}}
	concern = value.AddIf(concern, len(x.labels) > 0, "errorLabels", x.labels)
	concern = append(concern, x.notPrimaryFields(x.concern)...)
	if x.view.Role == commands.Mongos && !x.endsTransaction() {
		return slices.Concat(fields, concern, ok)
	}
	return slices.Concat(fields, ok, concern)
}

func (x *exchange) failed(fields bson.D, failure *fault.Error) bson.D {
	reply := append(x.notPrimaryFields(failure.Code), fields...)
	reply = append(reply, bson.E{Key: "ok", Value: 0.0}, bson.E{Key: "errmsg", Value: failure.Message})
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
	if !x.view.isMember() || !x.has(topologyVersion) || !fault.NotPrimary.In(code, x.view.Wire) {
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
