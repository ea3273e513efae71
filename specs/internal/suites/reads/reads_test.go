package reads

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/reference/retry"
)

// The tables hold every code and every operation that the retry core knows.
func TestTablesAreComplete(t *testing.T) {
	policy, err := retry.Named("")
	if err != nil {
		t.Fatal(err)
	}
	var codes []int32
	for _, c := range retryable {
		codes = append(codes, int32(c.Number))
	}
	if diff := cmp.Diff(policy.ReadCodes, codes); diff != "" {
		t.Errorf("codes (-core +table)\n%s", diff)
	}
	for _, c := range others {
		if slices.Contains(policy.ReadCodes, int32(c.Number)) {
			t.Errorf("%s is retryable", c.Name)
		}
	}
	commands := map[string]bool{}
	for _, o := range Operations(databaseName) {
		commands[o.Command] = true
		if !retry.Lookup(o.Command).RetryableRead {
			t.Errorf("%s: %s is not a retryable read", o.Title(), o.Command)
		}
	}
	for _, o := range retry.Operations() {
		if o.RetryableRead && !commands[o.Name] {
			t.Errorf("no suite has a %s", o.Name)
		}
	}
}
