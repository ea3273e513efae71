package specs_test

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/shared"
)

// official gives the directory of the official suites, or skips the test.
func official(t testing.TB) string {
	t.Helper()
	return shared.Path(t, "specifications")
}
