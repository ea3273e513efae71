package reference

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	xdriver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/internal/wire/godriver"
	"github.com/unified-test-runner/utr/internal/wire/replies"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// failure is a failed attempt, for the rules and for the user.
type failure struct {
	rules retry.Failure
	err   *result.Error
}

// classify adds the server and the labels of drivers to a failed attempt, including a reply with ok 1 and write errors.
// nil is a success.
func (a *attempt) classify(f *failure) *failure {
	if f == nil {
		return nil
	}
	f.err.Server = a.srv.address
	policy := a.driver.policy
	f.err.Labels = append(f.err.Labels, retry.Labels(policy, a.rules(a.cmd), a.srv.chosen(), f.rules)...)
	a.cmd.labelTransaction(f.err)
	f.rules.Labels = f.err.Labels
	f.err.Timeout = f.err.Timeout || a.cmd.timeout && outOfTime(f.err)
	// The storage engine does not support retryable writes (Retryable Writes, "Executing Retryable Write Commands").
	if policy.Since(retry.StorageEngineMessage) && a.cmd.txnNumber != nil && f.err.Code == codes.IllegalOperation &&
		strings.HasPrefix(f.err.Message, "Transaction numbers") {
		f.err.Message = "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
	}
	return f
}

// clientFailure returns a failure that is not an error reply.
func clientFailure(kind retry.Kind, name string, err error) *failure {
	return &failure{retry.Failure{Kind: kind}, &result.Error{Message: err.Error(), Client: true, Kind: name}}
}

// buildFailure classifies an error of building a command.
func buildFailure(err error, address string) *failure {
	f := clientFailure(retry.NotBuilt, "argument", err)
	f.err.Server = address
	if errors.Is(err, errNoTime) {
		f.rules.Kind, f.err.Kind, f.err.Timeout = retry.Client, "timeout", true
	}
	_ = errors.As(err, &f.err)
	return f
}

// argument returns an error about the operation's arguments.
func argument(message string) *result.Error {
	return &result.Error{Message: message, Client: true, Kind: "argument"}
}

// unsupported returns the error for a feature that the engine does not support.
func unsupported(what string) *result.Error {
	return &result.Error{Message: what + " is not supported", Client: true, Kind: "unsupported", Unsupported: what}
}

func isTimeout(err error) bool {
	var n net.Error // a context's deadline is one
	return errors.As(err, &n) && n.Timeout()
}

// checkoutFailure classifies a check-out error, including errors of the handshake and authentication.
func checkoutFailure(ctx context.Context, err error) *failure {
	f := clientFailure(retry.Checkout, "connection check-out", err)
	var cleared xdriver.RetryablePoolError
	var wait topology.WaitQueueTimeoutError
	var conn topology.ConnectionError
	answer := innermostCommand(err) // an error reply to hello or authentication
	switch {
	case errors.As(err, &cleared) && cleared.Retryable():
		f.rules.Kind, f.err.Kind = retry.PoolCleared, "pool cleared"
	case errors.As(err, &wait), errors.Is(err, topology.ErrServerClosed), errors.Is(err, topology.ErrPoolClosed):
	case answer != nil:
		f = serverFailure(*answer, bson.Raw(answer.Raw))
		f.rules.Handshake = true
	case errors.As(err, &conn):
		f.rules.Kind, f.rules.Handshake, f.err.Kind = retry.Network, true, "network"
	}
	late := ctx.Err() != nil && f.rules.Kind != retry.PoolCleared && f.rules.Kind != retry.Network
	f.err.Message, f.err.Timeout = godriver.CheckOutMessage(err), late || isTimeout(err)
	var outer xdriver.Error // with labels added by the Go driver
	f.rules.Connecting = answer == nil && errors.As(err, &outer) && outer.HasErrorLabel(codes.SystemOverloadedError)
	return f
}

// innermostCommand returns the error reply inside a handshake error, or nil.
func innermostCommand(err error) *xdriver.Error {
	for command := new(xdriver.Error); errors.As(err, command); err = command.Wrapped {
		if command.Code != 0 {
			return command
		}
	}
	return nil
}

// networkFailure classifies a socket error, a malformed reply, or the reply to another request.
func networkFailure(err error) *failure {
	f := clientFailure(retry.Network, "network", err)
	f.err.Timeout = isTimeout(err)
	if errors.Is(err, wire.ErrMalformed) || errors.As(err, new(*replies.Error)) {
		f.err.Kind, f.err.Timeout = "protocol", false
	}
	return f
}

// outOfTime reports whether an error contains MaxTimeMSExpired anywhere (Client Side Operations Timeout, "Error
// Transformations").
func outOfTime(err *result.Error) bool {
	expired := func(e result.Document) bool {
		n, _ := enginekit.Integer(e.Lookup("code"))
		return n == codes.MaxTimeMSExpired
	}
	return err.Code == codes.MaxTimeMSExpired || slices.ContainsFunc(err.WriteConcernErrors, expired) ||
		slices.ContainsFunc(slices.Collect(maps.Values(err.WriteErrors)), expired)
}

// replyError returns the error in a reply, or nil. A reply with ok 1 may have write errors and a write concern error.
func replyError(reply bson.Raw) *failure {
	err := xdriver.ExtractErrorFromServerResponse([]byte(reply))
	if err == nil {
		return nil
	}
	var command xdriver.Error
	var write xdriver.WriteCommandError
	switch {
	case errors.As(err, &command):
		return serverFailure(command, reply)
	case errors.As(err, &write):
		return writeFailure(write, reply)
	}
	f := clientFailure(retry.Client, "reply", err)
	f.err.Response = result.Document(reply)
	return f
}

// serverFailure classifies an error reply.
func serverFailure(e xdriver.Error, reply bson.Raw) *failure {
	f := labelled("server", reply)
	f.rules.Code, f.rules.Message = e.Code, e.Message
	f.err.Message, f.err.Code, f.err.CodeName = e.Message, e.Code, e.Name
	return f
}

// labelled returns a failure with the labels and baseBackoffMS of a reply, which are fields of its top level (Retryable
// Writes, "Determining Retryable Write Errors"; Transactions, "Error Labels"). The Go driver also reads the labels of a
// write concern error.
func labelled(kind string, reply bson.Raw) *failure {
	f := &failure{retry.Failure{Kind: retry.Server}, &result.Error{Kind: kind, Response: result.Document(reply)}}
	labels, _ := reply.Lookup("errorLabels").ArrayOK()
	values, _ := labels.Values()
	for _, v := range values {
		if label, ok := v.StringValueOK(); ok {
			f.err.Labels = append(f.err.Labels, label)
		}
	}
	f.rules.BaseBackoff = baseBackoff(reply.Lookup("baseBackoffMS"))
	f.rules.Labels = slices.Clone(f.err.Labels)
	return f
}

// baseBackoff reads baseBackoffMS, a number that may be a fraction. 0 means that it is not positive.
func baseBackoff(v bson.RawValue) time.Duration {
	ms, _ := v.AsFloat64OK()
	if d, ok := v.Decimal128OK(); ok {
		ms, _ = strconv.ParseFloat(d.String(), 64)
	}
	if !(ms > 0) { // also NaN
		return 0
	}
	return time.Duration(math.Ceil(min(ms*float64(time.Millisecond), float64(forever))))
}

// writeFailure classifies a reply with write errors or a write concern error.
func writeFailure(w xdriver.WriteCommandError, reply bson.Raw) *failure {
	f := labelled("write", reply)
	if c := w.WriteConcernError; c != nil {
		f.rules.Code, f.rules.Message, f.rules.WriteConcern = int32(c.Code), c.Message, true
		f.err.Message, f.err.Code, f.err.CodeName = c.Message, int32(c.Code), c.Name
		f.err.WriteConcernErrors = []result.Document{result.Document(c.Raw)}
	}
	for i, e := range w.WriteErrors {
		enginekit.AddWriteError(f.err, int(e.Index), bson.Raw(e.Raw))
		if i == 0 {
			f.err.Message, f.err.Code = e.Message, int32(e.Code)
			f.err.CodeName, _ = bson.Raw(e.Raw).Lookup("codeName").StringValueOK()
		}
	}
	return f
}

// without returns the labels that are not in out.
func without(labels []string, out ...string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(out, l) })
}
