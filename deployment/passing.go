package deployment

import "github.com/unified-test-runner/utr/deployment/wire"

// Passing reports whether a command that failed can be tried again as it was: see
// wire.Passing.
func Passing(err error) bool { return wire.Passing(err) }

// CodeOf gives the server's code of an error: see wire.CodeOf.
func CodeOf(err error) int32 { return wire.CodeOf(err) }

// The error codes that a look at a deployment distinguishes.
const (
	codeUnauthorized    = 13
	codeCommandNotFound = 59
)

// isUnauthorized reports whether the user may not do something.
func isUnauthorized(err error) bool { return CodeOf(err) == codeUnauthorized }
