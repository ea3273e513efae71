package enginekit

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/engine"
)

// Tests are those that an engine has open, for its Close. The zero value has
// none. It may be used concurrently.
type Tests struct {
	mu   sync.Mutex
	open map[engine.Test]bool
}

// Add remembers a test.
func (t *Tests) Add(test engine.Test) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[engine.Test]bool)
	}
	t.open[test] = true
}

// Forget takes a test out that has ended.
func (t *Tests) Forget(test engine.Test) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, test)
}

// End ends those that are still open.
func (t *Tests) End(ctx context.Context) {
	t.mu.Lock()
	open := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	for _, test := range open {
		_ = test.End(ctx) // nobody is left who would want to know
	}
}
