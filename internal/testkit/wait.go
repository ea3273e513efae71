// Package testkit contains helpers for the tests of several packages: checks, test data, waits, programs and files
// outside the checkout, and random seeds. docs/contributing/testing.md describes where new tests belong.
package testkit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Patience limits every wait of a test outside a synctest bubble. It must be long enough for a busy machine: a test
// that reaches it has failed.
const Patience = 3 * time.Minute

// Context returns a context that ends with the test, or after Patience.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), Patience,
		fmt.Errorf("%s took more than %s", t.Name(), Patience))
	t.Cleanup(cancel)
	return ctx
}

// Until polls until a condition holds, and fails the test if it does not hold within Patience.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, Patience)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Receive receives a value from a channel, and fails the test if that takes longer than Patience.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("%s: not within %s", what, Patience)
		panic("unreachable")
	}
}
