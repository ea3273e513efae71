package enginekit

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/engine"
)

// Engine is what engines have in common: an engine embeds it. Methods may be
// called concurrently; fields are set before.
type Engine struct {
	// Description is what Describe returns.
	Description engine.Description
	// NewTest makes an empty set of entities. It calls Forget at its end.
	NewTest func() engine.Test

	mu   sync.Mutex
	open map[engine.Test]bool
}

// Describe returns the description.
func (e *Engine) Describe(context.Context) (engine.Description, error) { return e.Description, nil }

// Begin opens an empty set of entities.
func (e *Engine) Begin(context.Context) (engine.Test, error) {
	t := e.NewTest()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = make(map[engine.Test]bool)
	}
	e.open[t] = true
	return t, nil
}

// Forget removes a test that has ended.
func (e *Engine) Forget(test engine.Test) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, test)
}

// Close ends the tests that are still open.
func (e *Engine) Close() error {
	e.mu.Lock()
	open := slices.Collect(maps.Keys(e.open))
	e.mu.Unlock()
	for _, test := range open {
		_ = test.End(context.Background()) // nobody is left to report it to
	}
	return nil
}
