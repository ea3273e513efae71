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
