package process

import (
	"bufio"
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
	s := &server{engine: e, out: out, cancels: map[int64]func(){}, replies: map[int64]chan message{}, raised: map[int64]*result.Error{}}
	defer s.calls.Wait()
	defer cancel()
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines, maxLine)
		if errors.Is(err, errClosed) {
			return nil
		}
		var m message
		if err == nil {
			err = decode(line, &m)
		}
		if err != nil {
			return err
		}
		if err := s.take(ctx, m); err != nil {
			return err
		}
	}
}

// server is the adapter's side of a conversation.
type server struct {
	engine engine.Engine
	test   engine.Test
	calls  sync.WaitGroup

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex // guards what follows
	last    int64
	cancels map[int64]func()        // of calls under way
	replies map[int64]chan message  // to callbacks
	raised  map[int64]*result.Error // by request
}

// take begins to serve a message.
func (s *server) take(ctx context.Context, m message) error {
	switch {
	case m.Method == noteCancel:
		var p cancelParams
		if err := decode(m.Params, &p); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := s.cancels[p.ID]; cancel != nil {
			cancel()
		}
	case m.ID == nil:
		return errors.New("a message without an id")
	case m.Method == "":
		s.mu.Lock()
		defer s.mu.Unlock()
		if replies := s.replies[*m.ID]; replies != nil {
			replies <- m
		}
	default:
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.cancels[*m.ID] = cancel
		s.mu.Unlock()
		s.calls.Go(func() {
			defer cancel()
			s.serve(ctx, *m.ID, m.Method, m.Params)
		})
	}
	return nil
}

// serve answers a request.
func (s *server) serve(ctx context.Context, id int64, method string, params json.RawMessage) {
	var line []byte
	got, err := s.answer(ctx, id, method, params)
	if err == nil {
		line, err = response(id, got)
	}
	if err != nil {
		reply := message{ID: &id}
		if !errors.As(err, &reply.Error) {
			reply.Error = &rpcError{codeInternal, err.Error()}
		}
		line, err = reply.line()
	}
	s.mu.Lock()
	delete(s.cancels, id)
	s.mu.Unlock()
	if err == nil { // a text is always JSON
		s.send(line)
	}
}

// send writes a message. A failure is ignored, because nobody would read a report of it.
func (s *server) send(line []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, _ = s.out.Write(line)
}

// answer carries out a call and returns its result.
func (s *server) answer(ctx context.Context, id int64, method string, params json.RawMessage) (any, error) {
	serve, known := map[string]func() (any, error){
		callHello: func() (any, error) { return s.hello(ctx) },
		callBegin: func() (any, error) {
			var err error
			s.test, err = s.engine.Begin(ctx)
			s.mu.Lock()
			clear(s.raised) // no call can refer to an error of an earlier test
			s.mu.Unlock()
			return nothing{}, err
		},
		callOpen: func() (any, error) {
			return with(params, func(p openParams) (any, error) {
				return raise(s.test.Open(ctx, engine.Entity{Kind: p.Kind, ID: p.ID, Options: bson.Raw(p.Options), URI: p.URI, ClusterTime: bson.Raw(p.ClusterTime)}))
			})
		},
		callDo: func() (any, error) {
			return with(params, func(p doParams) (any, error) { return s.do(ctx, id, p) })
		},
		callEvents: func() (any, error) {
			return with(params, func(p eventsParams) (any, error) {
				events, err := s.test.Events(ctx, p.Client, p.After, time.Duration(p.WaitMS)*time.Millisecond)
				return eventsResult{mapped(events, eventOf)}, err
			})
		},
		callLogs: func() (any, error) {
			return with(params, func(p logsParams) (any, error) {
				reader, ok := s.test.(engine.LogReader)
				if !ok {
					return nil, &rpcError{codeUnknownMethod, "the engine has no log messages"}
				}
				messages, err := reader.Logs(ctx, p.Client)
				return logsResult{mapped(messages, logMessageOf)}, err
			})
		},
		callClose: func() (any, error) {
			return with(params, func(p closeParams) (any, error) { return raise(s.test.Close(ctx, p.ID)) })
		},
		callEnd: func() (any, error) { return nothing{}, s.test.End(ctx) },
	}[method]
	if !known {
		return nil, &rpcError{codeUnknownMethod, "unknown call " + method}
	}
	if s.test == nil && method != callHello && method != callBegin {
		return nil, &rpcError{codeBadParams, method + " before begin"}
	}
	return serve()
}

// with decodes parameters.
func with[P any](params json.RawMessage, serve func(P) (any, error)) (any, error) {
	var p P
	if err := decode(params, &p); err != nil {
		return nil, &rpcError{codeBadParams, err.Error()}
	}
	return serve(p)
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

func (s *server) hello(ctx context.Context) (any, error) {
	d, err := s.engine.Describe(ctx)
	return helloResult{Protocol, d.Name, d.Version, d.SchemaVersion, d.Operations, d.Features}, err
}

func (s *server) do(ctx context.Context, id int64, p doParams) (any, error) {
	op := engine.Operation{Object: p.Object, Name: p.Name, Arguments: bson.Raw(p.Arguments), SaveAs: p.SaveAs}
	if p.Callback {
		op.Callback = func(ctx context.Context) *result.Error { return s.callback(ctx, id) }
	}
	out := s.test.Do(ctx, op)
	if out.Err != nil {
		s.mu.Lock()
		s.raised[id] = out.Err
		s.mu.Unlock()
	}
	return doResult{value(out.Value), failureOf(out.Err), out.Server, out.ServiceID, out.Decisions}, out.Broken
}

// callback has the other side run the operations of a callback.
func (s *server) callback(ctx context.Context, do int64) *result.Error {
	replies := make(chan message, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.replies[id] = replies
	s.mu.Unlock()
	line, err := request(&id, callCallback, callbackParams{do})
	if err != nil {
		return &result.Error{Message: err.Error(), Client: true}
	}
	s.send(line)
	var ended callbackResult
	select {
	case m := <-replies:
		err = decode(m.Result, &ended)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replies, id)
	if known := s.raised[ended.RaisedBy]; known != nil {
		return known
	}
	failed, bad := ended.Error.error()
	if err = errors.Join(err, bad); err != nil {
		return &result.Error{Message: err.Error(), Client: true}
	}
	return failed
}
