package utr_test

import (
	"github.com/unified-test-runner/utr"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
)

// A program that is utr with an additional engine: utr run --engine mine retryable-reads.
func Example() {
	utr.Main(utr.Engine{Name: "mine", New: func() (engine.Engine, error) {
		return driver.New(), nil // or an engine of your own
	}})
}
