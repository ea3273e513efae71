package server

import (
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// wrongType refuses a field of the wrong type.
func wrongType(field string, value bson.RawValue, expected string) error {
	return command.Errorf(command.CodeTypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected type '%s'", field, command.TypeName(value), expected)
}

// marshal is for documents of our own making, which always marshal: a panic would end the connection.
func marshal(doc bson.D) bson.Raw {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return raw
}

// firstKey is the name of a command, "" if the document is empty.
func firstKey(doc bson.Raw) string {
	e, err := doc.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

// extras are what a server adds to a reply beside ok.
type extras struct {
	// labels are those of an error. Nil while nobody has said which.
	labels []string
	// writeConcernError is added to a reply that is ok.
	writeConcernError any
	// last are fields behind all others.
	last bson.D
	// noTimes: the reply has neither operationTime nor $clusterTime.
	noTimes bool
	// fromShard is set if a mongos hands on a shard's reply as it is; other
	// replies it makes itself, and adds labels when all else is written.
	fromShard bool
	// concern is the code of the write concern error.
	concern int32
}

// compose makes the whole reply to a command: ok, the failure, labels,
// topologyVersion and times, in the order in which mongod and mongos write
// them.
func (k *conn) compose(v view, fields bson.D, x *extras, failure *command.Error) bson.Raw {
	if x == nil {
		x = &extras{}
	}
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

// labelFields are the labels of an error, and the base backoff of an overload
// error if the server gives one (Client Backpressure, "Overload retry policy").
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
	reply := append(make(bson.D, 0, len(fields)+5), fields...)
	ok := bson.E{Key: "ok", Value: 1.0}
	// mongod adds the write concern error after it has closed the reply
	// of the command with ok, mongos before.
	first := v.Role != command.Mongos || x.fromShard
	if first {
		reply = append(reply, ok)
	}
	if x.writeConcernError != nil {
		reply = append(reply, bson.E{Key: "writeConcernError", Value: x.writeConcernError})
		if len(x.labels) > 0 {
			reply = append(reply, bson.E{Key: "errorLabels", Value: x.labels})
		}
		reply = append(reply, k.whoIsPrimary(v, x.concern)...)
	}
	if !first {
		reply = append(reply, ok)
	}
	return reply
}

func (k *conn) failed(v view, fields bson.D, x *extras, failure *command.Error) bson.D {
	p := k.server.cluster.Profile
	var reply bson.D
	if !labelsLast(v, x) {
		reply = append(reply, k.labelFields(x.labels)...)
	}
	reply = append(reply, k.whoIsPrimary(v, failure.Code)...)
	reply = append(reply, fields...)
	reply = append(reply, bson.E{Key: "ok", Value: 0.0}, bson.E{Key: "errmsg", Value: failure.Message})
	if failure.Code != 0 {
		name := cmp.Or(failure.Name, command.CodeNameIn(failure.Code, p.Wire))
		reply = append(reply, bson.E{Key: "code", Value: failure.Code}, bson.E{Key: "codeName", Value: name})
	}
	if x.fromShard && v.Role == command.Mongos {
		// What a mongos adds to a shard's reply stands behind all else.
		x.last = append(x.last, failure.Extra...)
		return reply
	}
	return append(reply, failure.Extra...)
}

// whoIsPrimary is the topologyVersion that a member sends with an error by which it says
// that it is not the primary.
func (k *conn) whoIsPrimary(v view, code int32) bson.D {
	if p := k.server.cluster.Profile; !v.isMember() || !p.has(topologyVersion) || !command.NotPrimary.In(code, p.Wire) {
		return nil
	}
	return bson.D{{Key: "topologyVersion", Value: v.topologyVersion()}}
}

// now is the cluster's time.
func (s *Server) now() bson.Timestamp { return s.cluster.Backend.OperationTime() }

// clusterTime is the newest time that the cluster has heard of, be it by this one.
func (s *Server) clusterTime(heard bson.Timestamp) bson.Timestamp {
	return s.cluster.Backend.ClusterTime(heard)
}

// topologyVersion of the server.
func (v view) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: v.processID}, {Key: "counter", Value: v.version}}
}
