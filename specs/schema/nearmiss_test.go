package schema

import (
	"cmp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"id", "client", "clientEncryption", "expectError", "expectEvents", "databaseName"}
	testkit.PlayCases(t, "testdata/nearmiss.txt", func(_ *testing.T, misspelt string) string {
		return cmp.Or(didYouMean(strings.Trim(misspelt, `"`), names), "nothing")
	})
}
