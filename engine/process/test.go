package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// test implements engine.Test. Methods may be called concurrently.
type test struct {
	engine *Engine
	c      *conversation
	inTest // in the parameters of every call

	mu      sync.Mutex
	raised  map[*result.Error]int64 // the request that returned an error
	problem error                   // of the breach that ended the test
	why     error                   // the problem with details
}

// call makes a call. After a breach, every call returns its error.
func (t *test) call(ctx context.Context, method string, params, into any, during string,
	callback func() callbackResult) (int64, error) {
	t.mu.Lock()
	why := t.why
	t.mu.Unlock()
	if why != nil {
		return 0, why
	}
	id, err := t.c.call(ctx, method, params, into, during, callback)
	if b := (breach{}); errors.As(err, &b) {
		err = t.broken(b.error)
	}
	return id, err
}

// broken ends the test because of a breach, and returns the reason.
func (t *test) broken(problem error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		t.problem, t.why = problem, t.engine.retire(t.c, problem)
	}
	return t.why
}

func (t *test) Open(ctx context.Context, e engine.Entity) error {
	params := openParams{inTest: t.inTest, Kind: e.Kind, ID: e.ID, Options: document(e.Options), URI: e.URI,
		ClusterTime: document(e.ClusterTime)}
	return t.simple(ctx, callOpen, params, fmt.Sprintf("open %s %s", e.Kind, e.ID))
}

func (t *test) Close(ctx context.Context, id string) error {
	return t.simple(ctx, callClose, closeParams{t.inTest, id}, "close "+id)
}

// simple makes a call whose result can only be an error of the driver.
func (t *test) simple(ctx context.Context, method string, params any, during string) error {
	var r raised
	if _, err := t.call(ctx, method, params, &r, during, nil); err != nil {
		return err
	}
	if r.Error != nil {
		return r.Error.error()
	}
	return nil
}

func (t *test) Do(ctx context.Context, op engine.Operation) result.Outcome {
	during := fmt.Sprintf("%s on %s", op.Name, op.Object)
	params := doParams{inTest: t.inTest, Object: op.Object, Name: op.Name, Arguments: document(op.Arguments),
		SaveAs: op.SaveAs, Callback: op.Callback != nil}
	var callback func() callbackResult
	if op.Callback != nil {
		callback = func() callbackResult { return t.callbackResult(op.Callback(ctx)) }
	}
	var r doResult
	id, err := t.call(ctx, callDo, params, &r, during, callback)
	if err != nil {
		return result.Outcome{Broken: err}
	}
	failed := r.Error.error()
	if failed != nil {
		t.mu.Lock()
		t.raised[failed] = id
		t.mu.Unlock()
	}
	return result.Outcome{Value: result.Value{RawValue: bson.RawValue(r.Value)}, Err: failed, Server: r.Server,
		ServiceID: r.ServiceID, Decisions: r.Decisions}
}

func (t *test) callbackResult(err *result.Error) callbackResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	return callbackResult{Error: failureOf(err), RaisedBy: t.raised[err]}
}

// waitSlice limits how long one request waits for events, because an adapter need not be able to cancel a wait.
const waitSlice = 500 * time.Millisecond

func (t *test) Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error) {
	for {
		slice := min(wait, waitSlice)
		events, err := t.events(ctx, eventsParams{t.inTest, client, after, slice.Milliseconds()})
		wait -= slice
		if len(events) > 0 || err != nil || wait <= 0 {
			return events, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (t *test) events(ctx context.Context, params eventsParams) ([]result.Event, error) {
	during := "events of " + params.Client
	var r eventsResult
	if _, err := t.call(ctx, callEvents, params, &r, during, nil); err != nil {
		return nil, err
	}
	events := make([]result.Event, len(r.Events))
	for i, e := range r.Events {
		var err error
		events[i], err = e.event()
		if want := params.After + 1 + int64(i); err == nil && e.Sequence != want {
			err = fmt.Errorf("the sequence of an event is %d, expected %d", e.Sequence, want)
		}
		if err != nil {
			return nil, t.broken(&ProtocolError{err: fmt.Errorf("the result of %s: %w", during, err)})
		}
	}
	return events, nil
}

func (t *test) Logs(ctx context.Context, client string) ([]result.LogMessage, error) {
	var r logsResult
	if _, err := t.call(ctx, callLogs, clientParams{t.inTest, client}, &r, "logs of "+client, nil); err != nil {
		return nil, err
	}
	return mapped(r.Messages, logMessage.message), nil
}

func (t *test) Spans(ctx context.Context, client string) ([]result.Span, error) {
	var r spansResult
	if _, err := t.call(ctx, callSpans, clientParams{t.inTest, client}, &r, "spans of "+client, nil); err != nil {
		return nil, err
	}
	return mapped(r.Spans, span.span), nil
}

// End implements engine.Test. If it fails, the adapter is not used again, and End returns when it has ended: a call
// that hangs could disturb the next test. Until the end of ctx, End waits for other tests that are open in the adapter.
func (t *test) End(ctx context.Context) error {
	_, err := t.call(ctx, callEnd, t.inTest, &nothing{}, "end", nil)
	if err == nil {
		t.engine.release(t.c)
		return nil
	}
	err = t.broken(err)
	t.engine.release(t.c)
	select {
	case <-t.c.ended:
	case <-ctx.Done():
		t.c.fail(fmt.Errorf("another test made the adapter unusable: %w", t.problem))
	}
	return err
}
