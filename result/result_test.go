package result_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

func TestSummary(t *testing.T) {
	exits := map[result.Status]int{result.Failed: 1, result.Broken: 3, result.Flaky: 1}
	var all result.Summary
	for i, status := range result.Statuses() {
		var one result.Summary
		one.Add(&result.Verdict{Status: status})
		for _, other := range result.Statuses() {
			testkit.Equal(t, fmt.Sprintf("%s counted as %s", status, other), one.Count(other), testkit.Either(other == status, 1, 0))
		}
		if got := one.ExitCode(); got != exits[status] || status.FailsRun() != (exits[status] != 0) {
			t.Errorf("%s: exit code %d, red is %t", status, got, status.FailsRun())
		}
		for range i + 1 {
			all.Add(&result.Verdict{Status: status, Timings: result.Timings{Setup: result.Duration(time.Second)}})
		}
	}
	counts := []int{all.Failed, all.Broken, all.Flaky, all.Passed, all.KnownFailing, all.Skipped}
	testkit.Equal(t, "counts", counts, []int{1, 2, 3, 4, 5, 6})
	testkit.Equal(t, "timings", time.Duration(all.Timings.Setup), 21*time.Second)
	for _, r := range []struct {
		reason  string
		summary result.Summary
		want    int
	}{
		{"nothing ran", result.Summary{}, 0},
		{"a problem of the run itself", result.Summary{Passed: 1, Problems: []string{"a pattern matches nothing"}}, 1},
		{"an interruption", result.Summary{Passed: 1, Interrupted: true}, 3},
		{"broken outweighs failed", result.Summary{Failed: 1, Broken: 1}, 3},
		{"interrupted outweighs failed", result.Summary{Failed: 1, Interrupted: true}, 3},
	} {
		testkit.Equal(t, r.reason, r.summary.ExitCode(), r.want)
	}
}

// Tests wait while the process does not compute.
func TestWaiting(t *testing.T) {
	for _, r := range []struct {
		reason           string
		cpu, tests, want time.Duration
	}{
		{"tests that wait", 2, 5, 3},
		{"tests that compute on several cores, and the program itself", 7, 5, 0},
		{"the CPU time is not known", 0, 5, 0},
	} {
		s := result.Summary{CPU: r.cpu, Timings: result.Timings{Server: result.Duration(r.tests)}}
		testkit.Equal(t, r.reason, s.Waiting(), r.want)
	}
}

// Add adds every field.
func TestTimingsAdd(t *testing.T) {
	var sum, other, want result.Timings
	for i := range reflect.TypeFor[result.Timings]().NumField() {
		for v, n := range map[*result.Timings]int{&sum: 1, &other: 100, &want: 101} {
			reflect.ValueOf(v).Elem().Field(i).SetInt(int64(n * (i + 1)))
		}
	}
	sum.Add(other)
	testkit.Equal(t, "the sum", sum, want)
}

func TestWhere(t *testing.T) {
	for _, r := range []struct{ reason, cell, deployment, want string }{
		{"a run outside a matrix", "", "replicaset 8.0", "replicaset 8.0"},
		{"a cell of a matrix", "nightly", "replicaset 8.0", "nightly, replicaset 8.0"},
		{"a cell without a deployment", "nightly", "", "nightly"},
		{"neither", "", "", ""},
	} {
		testkit.Equal(t, r.reason, (result.TestID{Cell: r.cell, Deployment: r.deployment}).Where(), r.want)
	}
}
