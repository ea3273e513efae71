package server

import (
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

func wrongType(field string, value bson.RawValue, expected string) error {
	return command.Errorf(command.CodeTypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected type '%s'", field, command.TypeName(value), expected)
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

// extras are what the server adds to the fields of a reply.
type extras struct {
	labels            []string // error labels; nil if not determined yet
	writeConcernError any
	concern           int32  // code of writeConcernError
	last              bson.D // fields after all others
	noTimes           bool   // omit operationTime and $clusterTime
	// fromShard is set if a mongos forwards the reply of a shard. To its own replies it adds the labels last.
	fromShard bool
}

// compose returns the complete reply to a command: fields, ok, the error, labels, topologyVersion and times, in the
// order of mongod or mongos.
func (k *conn) compose(v view, fields bson.D, x *extras, failure *command.Error) bson.Raw {
	var reply bson.D
	if failure == nil {
		reply = k.succeeded(v, fields, x)
	} else {
		reply = k.failed(v, fields, x, failure)
	}
	if v.hasClock() && !x.noTimes {
		now := k.server.now()
		reply = append(reply,
			bson.E{Key: "$clusterTime", Value: bson.D{
				{Key: "clusterTime", Value: k.server.clusterTime(bson.Timestamp{})},
				{Key: "signature", Value: bson.D{
					{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}},
					{Key: "keyId", Value: int64(0)},
				}},
			}},
			bson.E{Key: "operationTime", Value: now})
	}
	if failure != nil && labelsLast(v, x) {
		reply = append(reply, k.labelFields(x.labels)...)
	}
	return marshal(append(reply, x.last...))
}

// labelFields returns the labels of an error, and the base backoff of an overload error (Client Backpressure, "Overload
// retry policy").
func (k *conn) labelFields(labels []string) bson.D {
	if len(labels) == 0 {
		return nil
	}
	out := bson.D{{Key: "errorLabels", Value: labels}}
	if base := int64(k.server.params.number(baseBackoff)); base > 0 && slices.Contains(labels, "SystemOverloadedError") {
		out = append(out, bson.E{Key: "baseBackoffMS", Value: base})
	}
	return out
}

func labelsLast(v view, x *extras) bool { return v.Role == command.Mongos && !x.fromShard }

func (k *conn) succeeded(v view, fields bson.D, x *extras) bson.D {
	ok, concern := bson.D{{Key: "ok", Value: 1.0}}, bson.D{}
	if x.writeConcernError != nil {
		concern = append(concern, bson.E{Key: "writeConcernError", Value: x.writeConcernError})
		addIf(&concern, len(x.labels) > 0, "errorLabels", x.labels)
		concern = append(concern, k.notPrimaryFields(v, x.concern)...)
	}
	if labelsLast(v, x) { // mongos adds the write concern error before ok, mongod after
		return slices.Concat(fields, concern, ok)
	}
	return slices.Concat(fields, ok, concern)
}

func (k *conn) failed(v view, fields bson.D, x *extras, failure *command.Error) bson.D {
	p := k.server.cluster.Profile
	var reply bson.D
	if !labelsLast(v, x) {
		reply = append(reply, k.labelFields(x.labels)...)
	}
	reply = append(reply, k.notPrimaryFields(v, failure.Code)...)
	reply = append(reply, fields...)
	reply = append(reply, bson.E{Key: "ok", Value: 0.0}, bson.E{Key: "errmsg", Value: failure.Message})
	if failure.Code != 0 {
		name := cmp.Or(failure.Name, command.CodeNameIn(failure.Code, p.Wire))
		reply = append(reply, bson.E{Key: "code", Value: failure.Code}, bson.E{Key: "codeName", Value: name})
	}
	if x.fromShard && v.Role == command.Mongos {
		// A mongos appends these fields to the shard's reply.
		x.last = append(x.last, failure.Extra...)
		return reply
	}
	return append(reply, failure.Extra...)
}

// notPrimaryFields returns the topologyVersion, if the error tells the client that the member is not primary.
func (k *conn) notPrimaryFields(v view, code int32) bson.D {
	if p := k.server.cluster.Profile; !v.isMember() || !p.has(topologyVersion) || !command.NotPrimary.In(code, p.Wire) {
		return nil
	}
	return bson.D{{Key: "topologyVersion", Value: v.topologyVersion()}}
}

func (s *Server) now() bson.Timestamp { return s.cluster.Backend.OperationTime() }

// clusterTime advances the cluster time to seen, if that is later, and returns it.
func (s *Server) clusterTime(seen bson.Timestamp) bson.Timestamp {
	return s.cluster.Backend.ClusterTime(seen)
}

func (v view) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: v.processID}, {Key: "counter", Value: v.version}}
}
