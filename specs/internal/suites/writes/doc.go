// Package writes has the tables of specs/retryable-writes.
package writes

import "github.com/unified-test-runner/utr/specs/internal/suites"

type (
	operation = suites.Operation
	story     = suites.Story
)
