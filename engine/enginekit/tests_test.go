package enginekit

import (
	"context"
	"errors"
	"testing"

	"github.com/unified-test-runner/utr/engine"
)

// ending is a test that leaves its engine when it ends, as tests do.
type ending struct {
	engine.Test
	of    *Tests
	ended int
}

func (e *ending) End(context.Context) error {
	e.ended++
	e.of.Forget(e)
	return errors.New("of no interest")
}

func TestTests(t *testing.T) {
	var open Tests
	open.End(t.Context())
	a, b := &ending{of: &open}, &ending{of: &open}
	open.Add(a)
	open.Add(b)
	if err := a.End(t.Context()); err == nil {
		t.Fatal("the test's error is lost")
	}
	for range 2 {
		open.End(t.Context())
	}
	if a.ended != 1 || b.ended != 1 {
		t.Errorf("ended are a %d times and b %d times", a.ended, b.ended)
	}
}
