package writes

import (
	"testing"

	"github.com/unified-test-runner/utr/reference/retry"
)

// The tables hold every retryable write that the retry core knows, and no
// other; those that are never retried are none.
func TestTablesAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range Operations(databaseName) {
		commands[o.Command] = true
		if !retry.Lookup(o.Command).RetryableWrite {
			t.Errorf("%s: %s is no retryable write", o.Title(), o.Command)
		}
		if o.Wrote == nil {
			t.Errorf("%s leaves nothing behind that could be checked", o.Title())
		}
	}
	for _, name := range []string{"commitTransaction", "abortTransaction"} {
		commands[name] = true // of the file transactions-end
	}
	for _, o := range retry.Operations() {
		if o.RetryableWrite && !commands[o.Name] {
			t.Errorf("no suite has a %s", o.Name)
		}
	}
}

// Every test looks at what is left behind, but for the one that ends while its
// write may be under way.
func TestOutcomesAreChecked(t *testing.T) {
	for _, f := range Suites().Files {
		for _, x := range f.Tests {
			if len(x.Outcome) == 0 && f.Name != "timeoutMS" && f.Name != "timeoutMS-clientBulkWrite" {
				t.Errorf("%s: %s has no outcome", f.Name, x.Description)
			}
		}
	}
}
