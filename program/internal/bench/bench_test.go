// Package bench measures utr, comparable programs, and how each figure grows with the
// size of the work. It asserts nothing about time. `make bench` runs it; benchstat
// -col /who compares the programs.
package bench

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// measure runs a benchmark at several sizes, in sub-benchmarks with names for
// benchstat. The last one reports the exponent of the growth: 1 is linear.
func measure(b *testing.B, who, unit string, sizes []int, do func(b *testing.B, size int)) {
	var first time.Duration
	for i, n := range sizes {
		b.Run(fmt.Sprintf("%s=%d/who=%s", unit, n, who), func(b *testing.B) {
			b.ReportAllocs()
			do(b, n)
			took := b.Elapsed() / time.Duration(b.N)
			switch {
			case i == 0:
				first = took
			case i == len(sizes)-1 && first > 0:
				b.ReportMetric(math.Log(float64(took)/float64(first))/math.Log(float64(n)/float64(sizes[0])), "exponent")
			}
		})
	}
}

// perUnit reports the time per unit when each iteration processes n units.
func perUnit(b *testing.B, n int, unit string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/"+unit)
}

// corpus returns the folder of the official suites, or else of our own.
func corpus(b *testing.B) string {
	b.Helper()
	if dir, found := testkit.FindOfficial(b); found {
		return dir
	}
	b.Log("not verified: the official suites are missing; using our own")
	return filepath.Join(testkit.Root(b), "specs")
}

// every returns n evenly spaced elements of a list.
func every[T any](list []T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}

// command builds utr and returns its path.
func command(b *testing.B) string {
	b.Helper()
	utr := filepath.Join(b.TempDir(), "utr")
	out, err := exec.Command("go", "build", "-o", utr, filepath.Join(testkit.Root(b), "cmd", "utr")).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %s", err, out)
	}
	return utr
}
