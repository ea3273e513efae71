package failpoint

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// extraInfo describes the fields that errors of a code have beside the message. A fail point has them in
// errorExtraInfo. A server ignores it with other codes.
type extraInfo struct {
	required []string    // fields that must exist
	kind     string      // and their type
	refusal  fault.Error // if one is missing
	fields   []string    // fields that the error has; nil means all
	defaults bson.D      // fields that the error has in any case
}

var (
	noObject = fault.Error{Code: fault.NotAnObject, Message: "invalid parameter: expected an object ()"}
	noString = fault.Error{Code: fault.ExtraInfoMissing, Message: "field not found, expected type string"}
	noView   = fault.Error{Code: 40248, Message: "command response expected to have a 'resolvedView' field"}

	extraInfos = map[int32]extraInfo{
		91:                              {fields: []string{}, defaults: value.Doc("remainingQuiesceTimeMillis", int64(0))},
		fault.DocumentValidationFailure: {fields: []string{"errInfo"}},
		169:                             {[]string{"resolvedView"}, "object", noView, nil, nil},
		227:                             {[]string{"ns"}, "string", noString, nil, nil},
		249:                             {[]string{"db"}, "string", noString, nil, nil},
		271:                             {},
		283:                             {},
		346:                             {[]string{"invalidateResumeToken"}, "object", noObject, nil, nil},
		fault.DuplicateKey: {[]string{"keyPattern", "keyValue"}, "object", noObject,
			[]string{"keyPattern", "keyValue"}, nil},
		fault.StaleConfig: {[]string{"ns"}, "string", noString, nil, nil},
	}
)

// parseExtraInfo returns the fields of an error with a code. given is errorExtraInfo; nil if it is missing.
func parseExtraInfo(code int32, given bson.Raw, wire int) (out bson.D, _ error) {
	info, known := extraInfos[code]
	switch {
	case fault.NeedsInfo.In(code, wire) && given == nil:
		return nil, fault.Errorf(fault.NoExtraInfo, "Missing required extra info for error code %s", fault.NameIn(code, wire))
	case given == nil || !known:
		return nil, nil
	}
	for _, name := range info.required {
		if v, _ := given.LookupErr(name); value.RawTypeName(v) != info.kind {
			return nil, fault.Errorf(info.refusal.Code, "Error parsing extra info for %s :: caused by :: %s",
				fault.NameIn(code, wire), info.refusal.Message)
		}
	}
	for _, e := range info.defaults {
		if n, ok := given.Lookup(e.Key).AsInt64OK(); ok {
			e.Value = n
		}
		out = append(out, e)
	}
	for _, e := range value.Must(given) {
		if info.fields == nil || slices.Contains(info.fields, e.Key) {
			out = append(out, e)
		}
	}
	return out, nil
}
