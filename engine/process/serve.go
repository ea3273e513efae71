package process

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Serve makes an adapter of an engine that is written in Go: it serves one
// conversation, until in is at its end.
func Serve(ctx context.Context, e engine.Engine, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	c := newConversation(out, unnoted)
	s := &server{engine: e, c: c, cancels: map[int64]func(){}, raised: map[int64]*result.Error{}}
	c.serve = func(m message) error { return s.take(ctx, m) }
	err := c.read(in)
	cancel()
	s.calls.Wait()
	c.fail(err)
	<-c.written
	if errors.Is(err, errClosed) {
		err = nil
	}
	if s.test != nil {
		err = errors.Join(err, s.test.End(context.WithoutCancel(ctx)))
	}
	return err
}

// server carries out the calls of a conversation.
type server struct {
	engine engine.Engine
	test   engine.Test // nil if none is open
	c      *conversation
	calls  sync.WaitGroup

	mu      sync.Mutex              // guards what follows
	cancels map[int64]func()        // of calls under way
	raised  map[int64]*result.Error // by request
}

// take begins to serve a call, or cancels one.
func (s *server) take(ctx context.Context, m message) error {
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

// serve answers a request. A reply that cannot be written is nobody's concern.
func (s *server) serve(ctx context.Context, id int64, method string, params json.RawMessage) {
	got, err := s.answer(ctx, id, method, params)
	line, failed := message{ID: &id}.line(got)
	if err = errors.Join(err, failed); err != nil {
		reply := message{ID: &id}
		if !errors.As(err, &reply.Error) {
			reply.Error = &rpcError{codeInternal, err.Error()}
		}
		line, _ = reply.line(nil) // a text is always JSON
	}
	s.mu.Lock()
	delete(s.cancels, id)
	s.mu.Unlock()
	select {
	case s.c.lines <- line:
	case <-s.c.ended:
	}
}

// answer carries out a call and returns its result.
func (s *server) answer(ctx context.Context, id int64, method string, params json.RawMessage) (any, error) {
	serve, known := map[string]func() (any, error){
		callHello: func() (any, error) {
			d, err := s.engine.Describe(ctx)
			return helloResult{Protocol, d.Name, d.Version, d.SchemaVersion, d.Operations, d.Features}, err
		},
		callBegin: func() (any, error) {
			var err error
			s.test, err = s.engine.Begin(ctx)
			s.mu.Lock()
			clear(s.raised) // no call can refer to an error of an earlier test
			s.mu.Unlock()
			return nothing{}, err
		},
		callOpen: with(params, func(p openParams) (any, error) {
			return raise(s.test.Open(ctx, engine.Entity{Kind: p.Kind, ID: p.ID, Options: bson.Raw(p.Options), URI: p.URI, ClusterTime: bson.Raw(p.ClusterTime)}))
		}),
		callDo: with(params, func(p doParams) (any, error) { return s.do(ctx, id, p) }),
		callEvents: with(params, func(p eventsParams) (any, error) {
			events, err := s.test.Events(ctx, p.Client, p.After, time.Duration(p.WaitMS)*time.Millisecond)
			return eventsResult{mapped(events, eventOf)}, err
		}),
		callLogs: with(params, func(p logsParams) (any, error) {
			reader, ok := s.test.(engine.LogReader)
			if !ok {
				return nil, &rpcError{codeUnknownMethod, "the engine has no log messages"}
			}
			messages, err := reader.Logs(ctx, p.Client)
			return logsResult{mapped(messages, logMessageOf)}, err
		}),
		callClose: with(params, func(p closeParams) (any, error) { return raise(s.test.Close(ctx, p.ID)) }),
		callEnd: func() (any, error) {
			ended := s.test
			s.test = nil
			return nothing{}, ended.End(ctx)
		},
	}[method]
	if !known {
		return nil, &rpcError{codeUnknownMethod, "unknown call " + method}
	}
	if s.test == nil && method != callHello && method != callBegin {
		return nil, &rpcError{codeBadParams, method + " before begin"}
	}
	return serve()
}

// with makes a function that decodes parameters first.
func with[P any](params json.RawMessage, serve func(P) (any, error)) func() (any, error) {
	return func() (any, error) {
		var p P
		if err := decode(params, &p); err != nil {
			return nil, &rpcError{codeBadParams, err.Error()}
		}
		return serve(p)
	}
}

// raise is the result of a call that may end with an error of the driver.
func raise(err error) (any, error) {
	var failed *result.Error
	if errors.As(err, &failed) {
		return raised{failureOf(failed)}, nil
	}
	return raised{}, err
}

// mapped converts a list. It is not nil, because JSON would show that as null.
func mapped[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = convert(a)
	}
	return out
}

func (s *server) do(ctx context.Context, id int64, p doParams) (any, error) {
	op := engine.Operation{Object: p.Object, Name: p.Name, Arguments: bson.Raw(p.Arguments), SaveAs: p.SaveAs}
	if p.Callback {
		// The engine's context may end with a deadline of the operation, which the
		// operations of the callback meet on their own: only cancelling stops the wait.
		op.Callback = func(context.Context) *result.Error { return s.callback(ctx, id) }
	}
	out := s.test.Do(ctx, op)
	if out.Err != nil {
		s.mu.Lock()
		s.raised[id] = out.Err
		s.mu.Unlock()
	}
	return doResult{value(out.Value), failureOf(out.Err), out.Server, out.ServiceID, out.Decisions}, out.Broken
}

// callback has utr run the operations of a callback.
func (s *server) callback(ctx context.Context, do int64) *result.Error {
	var ended callbackResult
	_, err := s.c.call(ctx, callCallback, callbackParams{do}, &ended, callCallback, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.raised[ended.RaisedBy]; known != nil {
		return known
	}
	failed, bad := ended.Error.error()
	if err = errors.Join(err, bad); err != nil {
		return &result.Error{Message: err.Error(), Client: true}
	}
	return failed
}
