package retry

import (
	"slices"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Labels returns the labels that the driver adds to an error of an attempt, apart from the labels of Transactions.
func Labels(p *Policy, s Settings, at Chosen, f Failure) (labels []string) {
	if f.Connecting && p.Since(ConnectionLabels) {
		labels = append(labels, codes.SystemOverloadedError, codes.RetryableError)
	}
	if p.Since(writeLabels) && labelsWrite(p, s, at, f) {
		labels = append(labels, codes.RetryableWriteError)
	}
	return labels
}

// labelsWrite reports whether the driver adds RetryableWriteError (Retryable Writes, "RetryableWriteError Labels"): to
// its own errors, and to the errors of servers before 4.4.
func labelsWrite(p *Policy, s Settings, at Chosen, f Failure) bool {
	ends := s.Operation.EndsTransaction
	switch {
	case !s.Operation.RetryableWrite, f.has(codes.RetryableWriteError), !labelled(f),
		!ends && (!s.RetryWrites || s.InTransaction):
		return false
	case f.Kind == PoolCleared, f.Handshake:
		return true // the command was not sent
	case f.Kind == Server && (at.Wire >= wire44 || f.WriteConcern && at.Mongos):
		return false
	}
	return p.supports(at)
}

// wire44 is the wire version of server 4.4, the first to add the label itself.
const wire44 = 9

// labelled reports whether the driver adds the label to this kind of failure if writes are retried.
func labelled(f Failure) bool {
	switch f.Kind {
	case Network, PoolCleared:
		return true
	case Server:
		return !f.Handshake && f.Code != codes.ReadConcernMajorityNotAvailableYet && slices.Contains(readCodes(), f.Code)
	}
	return false
}
