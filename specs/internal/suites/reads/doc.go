// Package reads has the tables of specs/retryable-reads.
package reads

import "github.com/unified-test-runner/utr/specs/internal/suites"

type (
	operation = suites.Operation
	story     = suites.Story
)
