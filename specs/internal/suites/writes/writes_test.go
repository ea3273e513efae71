package writes

import (
	"testing"

	"github.com/unified-test-runner/utr/reference/retry"
)

// The tables hold exactly the retryable writes that the retry core knows.
func TestTablesAreComplete(t *testing.T) {
	commands := map[string]bool{}
	for _, o := range Operations(databaseName) {
		commands[o.Command] = true
		if !retry.Lookup(o.Command).RetryableWrite {
			t.Errorf("%s: %s is not a retryable write", o.Title(), o.Command)
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

// Every test checks what is left behind, except the ones that end while their
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
