// Package testkit holds what tests of several packages share: how long they
// wait, what they find outside the checkout, and seeds that can be repeated.
// docs/testing.md says where a new test belongs.
package testkit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Patience bounds every wait of a test for something outside a synctest
// bubble. It only has to be longer than anything takes on a busy machine: a
// test that needs it has failed.
const Patience = time.Minute

// Context gives a context that ends when the test does, and at the latest
// after Patience.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), Patience, fmt.Errorf("%s took more than %s", t.Name(), Patience))
	t.Cleanup(cancel)
	return ctx
}

// Until asks again and again until a condition holds, and fails the test if it
// does not hold within Patience.
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

// Receive gives what a channel delivers, the zero value once it is closed, and
// fails the test if nothing comes within Patience.
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
