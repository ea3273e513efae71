package commands

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// A namespace can come from a string, as in bulkWrite, whose database no other check has seen.
func TestNamespace(t *testing.T) {
	for _, row := range []struct {
		reason, database, name string
		valid                  bool
	}{
		{"a collection", "db", "c", true},
		{"a zero byte in the collection", "db", "c\x00", false},
		{"a zero byte in the database", "d\x00", "c", false},
		{"no collection", "db", "", false},
	} {
		testkit.Equal(t, row.reason, namespace(row.database, row.name) == nil, row.valid)
	}
}
