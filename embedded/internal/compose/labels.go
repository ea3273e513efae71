package compose

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Facts are what the labels of a reply depend on, beside its errors.
type Facts struct {
	Wire   int // maxWireVersion of the server
	Mongos bool
	// HasTxnNumber is set for retryable writes and in transactions.
	HasTxnNumber, InTransaction, EndsTransaction bool
	ChangeStream                                 bool
	NoWrites                                     bool // the connection has written before, and nothing with this command
}

// Read reads what a command shows.
func (f *Facts) Read(command bson.Raw) {
	f.HasTxnNumber, f.InTransaction = value.Has(command, "txnNumber"), value.Has(command, "autocommit")
	f.ChangeStream = f.ChangeStream || value.Has(command, "pipeline", "0", "$changeStream")
}

// SetLabels sets the labels that follow from the codes of the errors, and the labels of the command's own error, unless
// a fail point has set labels. Labels of a fail point are also in a reply without an error, as after one that only
// blocks.
func (r *Reply) SetLabels() {
	if r.Labels != nil || r.Failure == nil && r.Concern == nil {
		return
	}
	r.Labels = r.labels()
	if r.Failure != nil {
		r.Labels = append(r.Labels, slices.DeleteFunc(slices.Clone(r.Failure.Labels),
			func(l string) bool { return slices.Contains(r.Labels, l) })...)
	}
}

// labels returns the labels that a server adds, because of the codes.
//
// Retryable Writes, "RetryableWriteError Labels"; Transactions, "Error Labels"; Change Streams, "Resumable Error";
// Client Backpressure, "Retryable Overload Error".
func (r *Reply) labels() (labels []string) {
	has, failed, concern := version.Of(r.Wire), r.failureIs, r.concernIs
	retriable := failed(fault.Retriable) || concern(fault.Retriable)
	// A mongos does not add the label: the shard does.
	write := retriable && has.ErrorLabels && !r.Mongos && r.HasTxnNumber && (!r.InTransaction || r.EndsTransaction)
	resumable := has.ErrorLabels && r.ChangeStream && (failed(fault.Resumable) || failed(fault.Retriable))
	overloaded := has.Overload && (failed(fault.SystemOverloaded) || concern(fault.SystemOverloaded))
	for _, l := range []struct {
		name  string
		added bool
	}{
		{codes.TransientTransactionError, r.InTransaction && r.transient()},
		{codes.RetryableWriteError, write},
		{codes.NoWritesPerformed, write && r.NoWrites && has.NoWritesPerformed},
		{codes.ResumableChangeStreamError, resumable},
		{"NonResumableChangeStreamError", !resumable && has.ErrorLabels && failed(fault.NonResumable)},
		{codes.SystemOverloadedError, overloaded},
		{codes.RetryableError, overloaded && retriable},
	} {
		if l.added {
			labels = append(labels, l.name)
		}
	}
	return labels
}

// transient reports whether the client may repeat a transaction: not if it may have been rolled back.
func (r *Reply) transient() bool {
	unknown := r.EndsTransaction && r.code() == fault.NoSuchTransaction && r.Concern != nil
	return r.failureIs(fault.Transient) && !unknown || !r.EndsTransaction && r.failureIs(fault.Retriable)
}

func (r *Reply) failureIs(c fault.Category) bool { return c.In(r.code(), r.Wire) }
func (r *Reply) concernIs(c fault.Category) bool { return c.In(r.ConcernCode, r.Wire) }

// code returns the code of the error, 0 without one.
func (r *Reply) code() int32 {
	if r.Failure == nil {
		return 0
	}
	return r.Failure.Code
}

// labelFields returns the labels, and the base backoff of an overload error (Client Backpressure, "Overload retry
// policy").
func labelFields(r *Reply) (out bson.D) {
	if len(r.Labels) == 0 {
		return nil
	}
	base := int64(0)
	if slices.Contains(r.Labels, codes.SystemOverloadedError) {
		base = r.Backoff()
	}
	return value.AddIf(value.Doc("errorLabels", r.Labels), base > 0, "baseBackoffMS", base)
}
