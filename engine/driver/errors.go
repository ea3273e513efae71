package driver

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// errorOf converts an error of the driver to the terms of expectedError. Timeout
// is set for every timeout; the caller knows whether timeoutMS was the reason.
func errorOf(err error) *result.Error {
	var ours *result.Error
	if errors.As(err, &ours) { // from this package, or from an operation in a callback
		if !ours.Timeout && mongo.IsTimeout(err) { // withTransaction wrapped it in a timeout
			late := *ours
			late.Kind, late.Message, late.Timeout = "timeout", err.Error(), true
			return &late
		}
		return ours
	}
	out := &result.Error{Message: err.Error(), Client: true, Kind: "client", Timeout: mongo.IsTimeout(err)}
	var command mongo.CommandError
	var write mongo.WriteException
	var bulk mongo.BulkWriteException
	var clientBulk mongo.ClientBulkWriteException
	var unconverted xdriver.Error // which the driver sometimes returns
	switch {
	case errors.As(err, &clientBulk):
		clientBulkError(out, clientBulk)
	case errors.As(err, &bulk):
		out.Kind, out.Client, out.Labels = "bulk write", false, bulk.Labels
		var writes []mongo.WriteError
		for _, e := range bulk.WriteErrors {
			writes = append(writes, e.WriteError)
		}
		writeErrors(out, writes, bulk.WriteConcernError)
	case errors.As(err, &write):
		out.Kind, out.Client, out.Labels, out.Response = "write", false, write.Labels, result.Document(write.Raw)
		writeErrors(out, write.WriteErrors, write.WriteConcernError)
	case errors.As(err, &command):
		commandError(out, command)
	case errors.As(err, &unconverted):
		commandError(out, mongo.CommandError{Code: unconverted.Code, Labels: unconverted.Labels, Name: unconverted.Name,
			Wrapped: unconverted, Raw: bson.Raw(unconverted.Raw)})
	default:
		out.Kind = kindOfError(err)
	}
	return out
}

// commandError converts a reply with ok 0. The driver uses the same type for network errors. They have no reply.
func commandError(out *result.Error, e mongo.CommandError) {
	out.Labels = e.Labels
	if e.Raw == nil && e.Code == 0 {
		out.Kind = kindOfError(e)
		return
	}
	out.Kind, out.Client = "server", false
	out.Code, out.CodeName, out.Response = e.Code, e.Name, result.Document(e.Raw)
}

// kindOfError returns the kind of an error that does not come from a server.
func kindOfError(err error) string {
	var cleared interface{ Retryable() bool }
	var selection topology.ServerSelectionError
	var invalid mongo.InvalidArgumentError
	switch {
	case errors.As(err, &selection):
		return "server selection"
	case errors.As(err, &topology.WaitQueueTimeoutError{}):
		return "connection check-out"
	case errors.As(err, &cleared) && cleared.Retryable():
		return "pool cleared"
	case mongo.IsNetworkError(err):
		return "network"
	case mongo.IsTimeout(err):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &invalid):
		return "argument"
	}
	return "client"
}

// writeErrors adds write errors. The code is the code of the first write error, or of
// the write concern error if there are no write errors.
func writeErrors(out *result.Error, writes []mongo.WriteError, concern *mongo.WriteConcernError) {
	if concern != nil {
		out.WriteConcernErrors = []result.Document{result.Document(concern.Raw)}
		out.Code, out.CodeName = int32(concern.Code), concern.Name
	}
	for i, e := range writes {
		enginekit.AddWriteError(out, e.Index, e.Raw)
		if i == 0 {
			out.Code = int32(e.Code)
			out.CodeName, _ = e.Raw.Lookup("codeName").StringValueOK()
		}
	}
}

// clientBulkError converts the error of a client bulk write. The driver does not keep the labels of its top-level
// error. The driver's message includes the errors of individual writes, which errorContains must not match (Unified
// Test Format, "clientBulkWrite"), so it is replaced.
func clientBulkError(out *result.Error, e mongo.ClientBulkWriteException) {
	out.Kind, out.Client = "client bulk write", false
	out.Message = fmt.Sprintf("client bulk write: %s, %s", plural.Of(len(e.WriteErrors), "write error"),
		plural.Of(len(e.WriteConcernErrors), "write concern error"))
	if e.WriteError != nil {
		out.Message = e.WriteError.Error()
		out.Response = result.Document(e.WriteError.Raw)
		out.Code = int32(e.WriteError.Code)
		out.CodeName, _ = e.WriteError.Raw.Lookup("codeName").StringValueOK()
		out.Client = e.WriteError.Raw == nil && e.WriteError.Code == 0
	}
	for i, w := range e.WriteErrors {
		enginekit.AddWriteError(out, i, enginekit.WriteErrorDocument(int32(w.Code), w.Message, w.Details))
	}
	for _, w := range e.WriteConcernErrors {
		concern := enginekit.WriteErrorDocument(int32(w.Code), w.Message, w.Details)
		out.WriteConcernErrors = append(out.WriteConcernErrors, result.Document(concern))
	}
	if r := written(e.PartialResult, e); r != nil {
		out.Partial, _ = enginekit.ValueOf(r)
	}
}
