package trial_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/engine/trial"
)

// The first error ends the function.
func ExampleTrial() {
	var t trial.Trial
	t.Try(func() {
		t.Require(1+1 == 2, "sums are wrong")
		t.Require(len("ab") == 3, "want %d characters", 3)
		fmt.Println("not reached")
	})
	fmt.Println(t.Failed())
	// Output:
	// want 3 characters
}
