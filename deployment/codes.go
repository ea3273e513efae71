package deployment

import "github.com/unified-test-runner/utr/deployment/wire"

// The error codes that a look at a deployment distinguishes.
const (
	codeUnauthorized    = 13
	codeCommandNotFound = 59
)

// isUnauthorized reports whether the user may not do something.
func isUnauthorized(err error) bool { return wire.CodeOf(err) == codeUnauthorized }
