package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine"
)

// Options say how to reach an adapter: Command, Address or Engine is set.
type Options struct {
	// Command is a program and its arguments.
	Command []string
	// Environment is that of the adapter, NAME=VALUE.
	Environment []string
	// Dir is the folder that the adapter starts in, "" for the current one.
	Dir string
	// Address is the host:port of an adapter that runs already.
	Address string
	// Engine is one in Go, for which Serve is the adapter, in this process. It is
	// closed with the engine.
	Engine engine.Engine
	// Transcript, which may be nil, gets all messages as lines. "->" marks what utr
	// sends, and "<-" what adapters send. An error of writing ends the conversation.
	Transcript io.Writer
	// StartLimit is how long an adapter may take until it answers the greeting;
	// DefaultStartLimit if it is 0.
	StartLimit time.Duration
	// Runner is the name and version of the caller, for the adapter's logs.
	Runner string
}

// DefaultStartLimit leaves time to load a virtual machine on a busy system.
const DefaultStartLimit = 30 * time.Second

// Engine is the driver behind an adapter. Methods may be called concurrently.
type Engine struct {
	options Options
	note    noteLine

	mu    sync.Mutex
	about *engine.Description    // of the first conversation
	all   map[*conversation]bool // whether a test uses it
}

// New makes an engine. No adapter is started yet.
func New(o Options) (*Engine, error) {
	ways := 0
	for _, given := range []bool{len(o.Command) > 0, o.Address != "", o.Engine != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, errors.New("an engine behind the protocol needs either a command, an address or an engine")
	}
	if o.StartLimit <= 0 {
		o.StartLimit = DefaultStartLimit
	}
	return &Engine{options: o, note: transcript(o.Transcript), all: map[*conversation]bool{}}, nil
}

// Describe returns what the adapter says of itself.
func (e *Engine) Describe(ctx context.Context) (engine.Description, error) {
	c, err := e.take(ctx)
	if err != nil {
		return engine.Description{}, err
	}
	e.put(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.about, nil
}

// Begin opens a test, in a conversation of its own.
func (e *Engine) Begin(ctx context.Context) (engine.Test, error) {
	c, err := e.take(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.call(ctx, callBegin, nothing{}, &nothing{}, "begin", nil); err != nil {
		c.fail(err)
		e.put(c)
		return nil, err
	}
	return newTest(e, c), nil
}

// Close ends all adapters. An adapter that does not end by itself is killed.
func (e *Engine) Close() error {
	e.mu.Lock()
	all := e.all
	e.all = map[*conversation]bool{}
	e.mu.Unlock()
	var ending sync.WaitGroup
	for c := range all {
		ending.Go(func() { c.fail(nil) })
	}
	ending.Wait()
	if e.options.Engine != nil {
		return e.options.Engine.Close()
	}
	return nil
}

// take returns an idle conversation, or a new one.
func (e *Engine) take(ctx context.Context) (*conversation, error) {
	e.mu.Lock()
	for c, used := range e.all {
		if !used && c.failed() { // an adapter can end while it is idle
			delete(e.all, c)
		} else if !used {
			e.all[c] = true
			e.mu.Unlock()
			return c, nil
		}
	}
	e.mu.Unlock()
	c, err := e.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.greet(ctx, c); err != nil {
		c.fail(err)
		if why := c.failure(); !errors.Is(err, why) {
			err = why
		}
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all[c] = true
	return c, nil
}

// put gives a conversation back after a test.
func (e *Engine) put(c *conversation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.failed() {
		delete(e.all, c)
	} else if e.all[c] { // the engine has not been closed meanwhile
		e.all[c] = false
	}
}

func (e *Engine) start(ctx context.Context) (*conversation, error) {
	switch {
	case e.options.Engine != nil:
		return e.serve(), nil
	case e.options.Address == "":
		c, err := start(e.options.Command, e.options.Environment, e.options.Dir)
		if err != nil {
			return nil, err
		}
		return converse(c.out, c.in, c.finish, e.note), nil
	}
	dialer := net.Dialer{Timeout: e.options.StartLimit}
	conn, err := dialer.DialContext(ctx, "tcp", e.options.Address)
	if err != nil {
		return nil, fmt.Errorf("no adapter listens at %s: %w", e.options.Address, err)
	}
	return converse(conn, conn, func(problem error) error { return errors.Join(problem, conn.Close()) }, e.note), nil
}

// serve begins a conversation with an adapter in this process.
func (e *Engine) serve() *conversation {
	requests, in := io.Pipe()
	out, replies := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(context.Background(), e.options.Engine, requests, replies)
		_, _ = requests.Close(), replies.Close()
	}()
	return converse(out, in, func(problem error) error {
		_, _ = in.Close(), out.Close()
		return errors.Join(problem, <-served)
	}, e.note)
}

// greet exchanges versions, and keeps the adapter's description.
func (e *Engine) greet(ctx context.Context, c *conversation) error {
	limit := fmt.Errorf("the adapter did not answer the greeting within %s", e.options.StartLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, e.options.StartLimit, limit)
	defer cancel()
	var hello helloResult
	if _, err := c.call(ctx, callHello, helloParams{Protocol, e.options.Runner}, &hello, "hello", nil); err != nil {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		return err
	}
	switch {
	case hello.Protocol != Protocol:
		return fmt.Errorf("the adapter speaks version %d of the protocol, utr speaks %d", hello.Protocol, Protocol)
	case hello.Name == "" || hello.SchemaVersion == "" || len(hello.Operations) == 0:
		return errors.New("the greeting of the adapter has no name, no schemaVersion or no operations")
	}
	slices.Sort(hello.Operations)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.about == nil {
		e.about = &engine.Description{Name: hello.Name, Version: hello.Version, SchemaVersion: hello.SchemaVersion,
			Operations: slices.Compact(hello.Operations), Features: hello.Features}
	}
	return nil
}
