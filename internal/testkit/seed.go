package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed gives the seed of what a test chooses by chance, and logs it. UTR_SEED
// repeats a run.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("UTR_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("UTR_SEED: %v", err)
		}
	}
	t.Logf("UTR_SEED=%d repeats this", seed)
	return seed
}

// Chance says of one thing after another whether a test looks at it: at one of
// each n in a row, chosen by Seed, so that every run has about the same work; at
// all of them with UTR_SOAK=1, which make soak sets.
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
