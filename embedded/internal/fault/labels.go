package fault

import "github.com/unified-test-runner/utr/embedded/internal/version"

// Reply is what the labels of the reply to a command depend on.
type Reply struct {
	Wire              int // maxWireVersion of the server
	Mongos            bool
	Code, ConcernCode int32 // of the error and of the write concern error; 0 without one
	HasConcern        bool  // the reply has a write concern error
	// HasTxnNumber is set for retryable writes and in transactions.
	HasTxnNumber, InTransaction, EndsTransaction bool
	ChangeStream                                 bool
	NoWrites                                     bool // the connection has written before, and nothing with this command
}

// Labels returns the labels that a server adds, because of the codes.
//
// Retryable Writes, "RetryableWriteError Labels"; Transactions, "Error Labels"; Change Streams, "Resumable Error";
// Client Backpressure, "Retryable Overload Error".
func (r Reply) Labels() (labels []string) {
	has := version.Of(r.Wire)
	is := func(c Category, code int32) bool { return c.In(code, r.Wire) }
	retriable := is(Retriable, r.Code) || is(Retriable, r.ConcernCode)
	// A transaction that may be rolled back is not repeated.
	unknown := r.EndsTransaction && r.Code == NoSuchTransaction && r.HasConcern
	if r.InTransaction && (is(Transient, r.Code) && !unknown || !r.EndsTransaction && is(Retriable, r.Code)) {
		labels = append(labels, "TransientTransactionError")
	}
	// A mongos does not add the label: the shard does.
	if has.ErrorLabels && !r.Mongos && r.HasTxnNumber && (!r.InTransaction || r.EndsTransaction) && retriable {
		labels = append(labels, "RetryableWriteError")
		if has.NoWritesPerformed && r.NoWrites {
			labels = append(labels, "NoWritesPerformed")
		}
	}
	switch {
	case !has.ErrorLabels:
	case r.ChangeStream && (is(Resumable, r.Code) || is(Retriable, r.Code)):
		labels = append(labels, "ResumableChangeStreamError")
	case is(NonResumable, r.Code):
		labels = append(labels, "NonResumableChangeStreamError")
	}
	if has.Overload && (is(SystemOverloaded, r.Code) || is(SystemOverloaded, r.ConcernCode)) {
		labels = append(labels, "SystemOverloadedError")
		if retriable {
			labels = append(labels, "RetryableError")
		}
	}
	return labels
}
