package cli

import (
	"testing"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
)

// utr explain simulates the operations of suites, except those that do not send one command.
func TestOperationsOfSuites(t *testing.T) {
	except := map[string]string{
		"appendMetadata":   "it sends nothing",
		"getSnapshotTime":  "it sends nothing",
		"startTransaction": "it sends nothing",
		"withTransaction":  "it sends what its callback sends",
	}
	for _, o := range operations.All() {
		switch o.Kind {
		case entities.TestRunner, entities.ClientEncryption, entities.Bucket: // most of these send several commands
			continue
		}
		if _, err := operationName(o.Name); (err == nil) == (except[o.Name] != "") {
			t.Errorf("%s.%s: %v, except because %q", o.Kind, o.Name, err, except[o.Name])
		}
	}
}
