package process

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// served is how many tests can be open in Serve. Goroutines use all processors.
const served = 16

// Serve is an adapter for an engine in Go. It serves one conversation until in ends.
func Serve(ctx context.Context, e engine.Engine, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	c := newConversation(&transcript{})
	s := &server{engine: e, c: c, tests: map[int64]*servedTest{}, cancels: map[int64]func(){}}
	c.serve = func(m message) error { return s.start(ctx, m) }
	go c.write(out)
	err := c.read(in)
	cancel()
	s.calls.Wait()
	c.fail(err)
	<-c.written
	if errors.Is(err, errClosed) {
		err = nil
	}
	for _, t := range s.tests {
		err = errors.Join(err, t.End(context.WithoutCancel(ctx)))
	}
	return err
}

// server performs the calls of a conversation.
type server struct {
	engine engine.Engine
	c      *conversation
	calls  sync.WaitGroup

	mu      sync.Mutex            // guards the fields below
	tests   map[int64]*servedTest // that are open
	cancels map[int64]func()      // by open request
}

// servedTest is an open test.
type servedTest struct {
	engine.Test
	raised sync.Map // the *result.Error of a request
}

// start starts a call or cancels one.
func (s *server) start(ctx context.Context, m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Method == noteCancel:
		var p cancelParams
		if err := decode(m.Params, &p); err != nil {
			return err
		}
		if cancel := s.cancels[p.ID]; cancel != nil {
			cancel()
		}
	case m.ID == nil:
		return errors.New("a message without an id")
	default:
		ctx, cancel := context.WithCancel(ctx)
		s.cancels[*m.ID] = cancel
		s.calls.Go(func() {
			defer cancel()
			s.serve(ctx, *m.ID, m.Method, m.Params)
		})
	}
	return nil
}

// serve replies to a request.
func (s *server) serve(ctx context.Context, id int64, method string, params json.RawMessage) {
	content, err := s.perform(ctx, id, method, params)
	line, failed := message{ID: &id}.line(content)
	if err = errors.Join(err, failed); err != nil {
		reply := message{ID: &id}
		if !errors.As(err, &reply.Error) {
			reply.Error = &rpcError{codeInternal, err.Error()}
		}
		line, _ = reply.line(nil) // marshalling an rpcError cannot fail
	}
	s.mu.Lock()
	delete(s.cancels, id)
	s.mu.Unlock()
	select {
	case s.c.lines <- line:
	case <-s.c.ended:
	}
}

// perform performs a call and returns its result.
func (s *server) perform(ctx context.Context, id int64, method string, params json.RawMessage) (any, error) {
	switch method {
	case callHello:
		d, err := s.engine.Describe(ctx)
		return helloResult{protocol, d, served}, err
	case callBegin:
		return with(params, func(p inTest) (any, error) { return nothing{}, s.begin(ctx, p.Test) })
	case callOpen, callDo, callEvents, callLogs, callSpans, callClose, callEnd:
		var p inTest
		_ = json.Unmarshal(params, &p) // the handler decodes all parameters and reports errors
		s.mu.Lock()
		t := s.tests[p.Test]
		s.mu.Unlock()
		if t == nil {
			return nil, &rpcError{codeBadParams, method + " before begin"}
		}
		return s.performInTest(ctx, t, id, method, params)
	}
	return nil, &rpcError{codeUnknownMethod, "unknown call " + method}
}

func (s *server) begin(ctx context.Context, number int64) error {
	t, err := s.engine.Begin(ctx)
	if err == nil {
		s.mu.Lock()
		s.tests[number] = &servedTest{Test: t}
		s.mu.Unlock()
	}
	return err
}

func (s *server) performInTest(ctx context.Context, t *servedTest, id int64, method string,
	params json.RawMessage) (any, error) {
	switch method {
	case callOpen:
		return with(params, func(p openParams) (any, error) {
			return raise(t.Open(ctx, engine.Entity{Kind: p.Kind, ID: p.ID, Options: bson.Raw(p.Options), URI: p.URI,
				ClusterTime: bson.Raw(p.ClusterTime)}))
		})
	case callDo:
		return with(params, func(p doParams) (any, error) { return s.do(ctx, t, id, p) })
	case callEvents:
		return with(params, func(p eventsParams) (any, error) {
			events, err := t.Events(ctx, p.Client, p.After, time.Duration(p.WaitMS)*time.Millisecond)
			return eventsResult{mapped(events, eventOf)}, err
		})
	case callLogs:
		return with(params, func(p clientParams) (any, error) {
			messages, err := t.Logs(ctx, p.Client)
			return logsResult{mapped(messages, logMessageOf)}, err
		})
	case callSpans:
		return with(params, func(p clientParams) (any, error) {
			spans, err := t.Spans(ctx, p.Client)
			return spansResult{mapped(spans, spanOf)}, err
		})
	case callClose:
		return with(params, func(p closeParams) (any, error) { return raise(t.Close(ctx, p.ID)) })
	default: // callEnd
		return with(params, func(p inTest) (any, error) {
			s.mu.Lock()
			delete(s.tests, p.Test)
			s.mu.Unlock()
			return nothing{}, t.End(ctx)
		})
	}
}

// with decodes the parameters of a call and performs it.
func with[P any](params json.RawMessage, perform func(P) (any, error)) (any, error) {
	var p P
	if err := decode(params, &p); err != nil {
		return nil, &rpcError{codeBadParams, err.Error()}
	}
	return perform(p)
}

// raise turns an error of the driver into a result.
func raise(err error) (any, error) {
	var failed *result.Error
	if errors.As(err, &failed) {
		return raised{failureOf(failed)}, nil
	}
	return raised{}, err
}

// mapped converts a list. The result is never nil: JSON would encode that as null.
func mapped[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = convert(a)
	}
	return out
}

func (s *server) do(ctx context.Context, t *servedTest, id int64, p doParams) (any, error) {
	op := engine.Operation{Object: p.Object, Name: p.Name, Arguments: bson.Raw(p.Arguments), SaveAs: p.SaveAs}
	if p.Callback {
		// The engine's context can have the deadline of withTransaction. It also applies
		// to the operations in the callback, so only canceling the request stops the wait.
		op.Callback = func(context.Context) *result.Error { return s.callback(ctx, t, id) }
	}
	out := t.Do(ctx, op)
	if out.Err != nil {
		t.raised.Store(id, out.Err)
	}
	return doResult{value(out.Value.RawValue), failureOf(out.Err), out.Server, out.ServiceID, out.Decisions}, out.Broken
}

// callback makes utr run the operations of a callback.
func (s *server) callback(ctx context.Context, t *servedTest, do int64) *result.Error {
	var r callbackResult
	_, err := s.c.call(ctx, callCallback, callbackParams{do}, &r, callCallback, nil)
	if original, found := t.raised.Load(r.RaisedBy); found {
		return original.(*result.Error)
	}
	if err != nil {
		return &result.Error{Message: err.Error(), Client: true}
	}
	return r.Error.error()
}
