package process_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// sharers are tests that are open at once.
func sharers(t *testing.T, e *process.Engine, many int) []engine.Test {
	tests := make([]engine.Test, many)
	for i := range tests {
		var err error
		tests[i], err = e.Begin(testkit.Context(t))
		testkit.Check(t, err)
	}
	return tests
}

func find(ctx context.Context, test engine.Test, object string) result.Outcome {
	return test.Do(ctx, engine.Operation{Object: object, Name: "find"})
}

// processOf returns the adapter in which a test is open.
func processOf(t *testing.T, test engine.Test) int32 {
	out := find(testkit.Context(t), test, "collection")
	testkit.Check(t, out.Broken)
	return out.Value.Int32()
}

// As many tests share a process as the adapter allows. Another one starts a process.
func TestProcesses(t *testing.T) {
	e := newEngine(t, "shared")
	processes := map[int32]int{}
	tests := sharers(t, e, 9)
	for i, test := range tests {
		processes[processOf(t, test)]++
		testkit.Equal(t, "processes", len(processes), i/4+1)
	}
	for _, test := range tests {
		testkit.Check(t, test.End(testkit.Context(t)))
	}
}

// A test that makes its process unusable is broken at once. Other tests in the process continue if they can, and later
// tests get another one.
func TestSharedMisbehaviors(t *testing.T) {
	t.Parallel()
	const retired = "the adapter gets no more tests, and is killed when its other tests have ended"
	for _, r := range []struct {
		object, reason string
		contains       []string
		spreads        bool // to the other tests
	}{
		{"hangs", "a driver can hang in one test", []string{"no reply to find on hangs within 3s", retired, "last output:\nwaiting"},
			false},
		{"wrong", "a result is wrong in one test", []string{"the adapter answered find on wrong wrongly", retired}, false},
		{"exits", "the process is gone for all", []string{"the adapter closed its output, while 3 tests were open in the adapter; the adapter ended with exit status 3"},
			true},
	} {
		t.Run(r.object, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			e := newEngine(t, "shared")
			tests := sharers(t, e, 3)
			first := processOf(t, tests[0])
			short, cancel := context.WithCancel(ctx)
			cancel()
			if r.object != "hangs" {
				short = ctx
			}
			testkit.ErrorContains(t, find(short, tests[0], r.object).Broken, r.contains...)
			if r.spreads {
				for _, test := range tests {
					testkit.ErrorContains(t, find(ctx, test, "collection").Broken, r.contains...)
					testkit.ErrorContains(t, test.End(ctx), r.contains...)
				}
			} else {
				testkit.Equal(t, "another test continues in the same process", processOf(t, tests[1]), first)
				ended := make(chan error, 1)
				go func() { ended <- tests[0].End(ctx) }()
				testkit.Check(t, tests[1].End(ctx))
				testkit.Equal(t, "the last test continues", processOf(t, tests[2]), first)
				testkit.Equal(t, "the broken test has ended while its call can disturb others", len(ended), 0)
				testkit.Check(t, tests[2].End(ctx))
				testkit.ErrorContains(t, testkit.Receive(t, "the end of the broken test", ended), r.contains...)
			}
			next := sharers(t, e, 1)[0]
			testkit.Equal(t, "a later test is in the same process", processOf(t, next) == first, false)
			testkit.Check(t, next.End(ctx))
		})
	}
}

// A process in which a call hangs is killed at the limit of the clean-up. Tests that are still open in it get the
// reason.
func TestSharedHangIsLimited(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	tests := sharers(t, newEngine(t, "shared"), 2)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_ = find(short, tests[0], "hangs")
	testkit.ErrorContains(t, tests[0].End(short), "no reply to find on hangs")
	err := find(ctx, tests[1], "collection").Broken
	testkit.ErrorContains(t, err, "another test made the adapter unusable: no reply to find on hangs", "the adapter was killed")
	testkit.Equal(t, "lines about output", strings.Count(err.Error(), "last output"), 1)
	testkit.ErrorContains(t, tests[1].End(ctx), "another test made the adapter unusable")
}
