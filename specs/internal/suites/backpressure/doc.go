// Package backpressure has the tables of specs/client-backpressure.
package backpressure

import "github.com/unified-test-runner/utr/specs/internal/suites"

type (
	operation = suites.Operation
	story     = suites.Story
)
