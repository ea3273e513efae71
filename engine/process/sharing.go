package process

import (
	"context"
	"fmt"
)

// use is how tests use a conversation. The engine's mutex guards it.
type use struct {
	tests   int   // that are open
	last    int64 // the number of the latest test
	retired error // the breach of a test: the conversation gets no other test, and ends with the last one
}

// acquire returns the conversation for a test: an existing one that has room, or a new one.
func (e *Engine) acquire(ctx context.Context) (*conversation, error) {
	for {
		c, started := e.choose()
		switch {
		case c != nil:
			return c, nil
		case started == nil:
			return e.another(ctx)
		}
		select {
		case <-started:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// choose returns the conversation with the fewest tests, which gets one more; or a channel that is closed when another
// one has started; or neither if the caller must start one.
func (e *Engine) choose() (*conversation, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var best *conversation
	for c, u := range e.all {
		switch {
		case c.hasFailed():
			if u.tests == 0 { // an adapter can end while it is idle
				delete(e.all, c)
			}
		case u.retired == nil && (best == nil || u.tests < e.all[best].tests):
			best = c
		}
	}
	switch {
	case best != nil && e.all[best].tests < max(1, e.room):
		e.all[best].tests++
		return best, nil
	case e.starting > 0 && (e.about == nil || e.room > 1): // which may have room
		return nil, e.changed
	}
	e.starting++
	return nil, nil
}

// another starts a conversation for a test.
func (e *Engine) another(ctx context.Context) (*conversation, error) {
	e.mu.Lock()
	never := e.about == nil
	e.mu.Unlock()
	c, err := e.started(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starting--
	close(e.changed)
	e.changed = make(chan struct{})
	if err == nil {
		e.all[c] = &use{tests: 1}
	} else if never && e.options.Unavailable != nil && ctx.Err() == nil {
		err = e.options.Unavailable(err)
	}
	return c, err
}

// number returns the parameters that name the next test of a conversation.
func (e *Engine) number(c *conversation) inTest {
	e.mu.Lock()
	defer e.mu.Unlock()
	if u := e.all[c]; e.room > 0 && u != nil { // not after Close
		u.last++
		return inTest{u.last}
	}
	return inTest{}
}

// retire ends a conversation in which a test met a breach: at once if no other test is open in it, otherwise with the
// last of them. It returns the reason for the test.
func (e *Engine) retire(c *conversation, problem error) error {
	e.mu.Lock()
	others := 0
	if u := e.all[c]; u != nil && !c.hasFailed() {
		if u.retired == nil {
			u.retired = problem
		}
		others = u.tests - 1
	}
	e.mu.Unlock()
	if others == 0 {
		c.fail(problem)
		return c.failure()
	}
	return c.explain(fmt.Errorf("%w; the adapter gets no more tests, and is killed when its other tests have ended",
		problem))
}

// release ends a test in a conversation.
func (e *Engine) release(c *conversation) {
	e.mu.Lock()
	u := e.all[c]
	if u == nil { // after Close
		e.mu.Unlock()
		return
	}
	u.tests--
	if c.hasFailed() && u.tests == 0 {
		delete(e.all, c)
	}
	end := u.retired != nil && u.tests == 0
	e.mu.Unlock()
	if end {
		c.fail(u.retired)
	}
}
