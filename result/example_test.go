package result_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/result"
)

// A summary counts verdicts, and decides the exit code of a run.
func ExampleSummary() {
	var s result.Summary
	for _, status := range []result.Status{result.Passed, result.Skipped, result.KnownFailing} {
		s.Add(&result.Verdict{Status: status})
	}
	fmt.Println(s.Ran(), s.ExitCode())
	s.Add(&result.Verdict{Status: result.Failed, Reason: "the values differ"})
	fmt.Println(s.Ran(), s.ExitCode())
	s.Interrupt("interrupted by a signal")
	fmt.Println(s.ExitCode(), s.Breaks[0].Reason)
	// Output:
	// 2 0
	// 3 1
	// 3 interrupted by a signal
}
