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

// need returns a field of a document. It notes an error if the field is missing or has another type.
func need(p *fault.First, doc bson.Raw, name, kind string) bson.RawValue {
	given, err := doc.LookupErr(name)
	p.Refuse(err != nil, fault.NoSuchKey, "Missing expected field \"%s\"", name)
	checkType(p, name, kind, given)
	return given
}

// checkType notes an error if a field has another type.
func checkType(p *fault.First, name, kind string, given bson.RawValue) {
	_, isNumber := given.AsInt64OK()
	found := value.RawTypeName(given)
	p.Refuse(found != kind && !(isNumber && kind == "number"), fault.TypeMismatch,
		"\"%s\" had the wrong type. Expected %s, found %s", name, kind, found)
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
	return value.Doc("processId", v.processID, "counter", v.version)
}
