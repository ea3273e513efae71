package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func wrongType(field string, given bson.RawValue, expected string) error {
	return fault.Errorf(fault.TypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected type '%s'", field, value.RawTypeName(given), expected)
}

// firstKey returns the name of a command, "" if the document is empty.
func firstKey(doc bson.Raw) string {
	e, err := doc.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

func (s *Server) now() bson.Timestamp { return s.cluster.Backend.OperationTime() }

// clusterTime advances the cluster time to seen, if that is later, and returns it.
func (s *Server) clusterTime(seen bson.Timestamp) bson.Timestamp {
	return s.cluster.Backend.ClusterTime(seen)
}

func (v view) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: v.processID}, {Key: "counter", Value: v.version}}
}
