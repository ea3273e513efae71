package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the random seed of a test and logs it. UTR_SEED sets it, to repeat a run.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("UTR_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("UTR_SEED: %v", err)
		}
	}
	t.Logf("UTR_SEED=%d repeats this run", seed)
	return seed
}

// Chance returns a function that samples items: it returns true for a random one of every n consecutive calls, so that
// all runs do about the same work. If UTR_SOAK=1 (make soak sets it), it always returns true.
func Chance(t testing.TB, n int) func() bool {
	t.Helper()
	if os.Getenv("UTR_SOAK") == "1" {
		return func() bool { return true }
	}
	random := rand.New(rand.NewPCG(Seed(t), 0))
	chosen, next := 0, 0
	return func() bool {
		if next == 0 {
			chosen, next = random.IntN(n), n
		}
		next--
		return next == chosen
	}
}
