package specs

import (
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/schema"
)

// FromValue makes a suite of a value that was parsed, or put together, by the
// caller. Options.Schemas alone is used. The error, if any, is an
// *InvalidError.
func FromValue(file string, root *source.Value, options Options) (*Suite, error) {
	if options.Schemas == nil {
		options.Schemas = schema.New()
	}
	return check(file, root, options.Schemas)
}
