package engine

import (
	"context"

	"github.com/unified-test-runner/utr/result"
)

// LogReader is a Test that gives log messages, for expectLogMessages. Engines
// with FeatureLogging return one from Begin.
type LogReader interface {
	// Logs returns the log messages of a client so far, in order: those of the
	// components and levels that its observeLogMessages names. Those of a
	// closed client can still be read.
	Logs(ctx context.Context, client string) ([]result.LogMessage, error)
}
