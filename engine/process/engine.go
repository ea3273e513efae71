// Package process implements an engine in another process: a driver in any language behind a small program, its
// adapter. Both sides exchange JSON-RPC 2.0 messages, one per line, with the calls of package engine and BSON as
// canonical Extended JSON. docs/driver/engine-protocol.md describes the protocol for authors of adapters.
//
// A conversation is a process that utr starts, or a connection to a running adapter. Tests share conversations with
// adapters that play several tests at once; see sharing.go. With other adapters, each open test has its own one.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// Options configure an engine. Exactly one of Command, Address and Engine must be set.
type Options struct {
	// Command is the program of the adapter and its arguments.
	Command []string
	// Environment is the environment of the program, as NAME=VALUE.
	Environment []string
	// Install, which may be nil, is called before the first start of the program, and until it succeeds. It returns the
	// Command and the Environment to use.
	Install func(ctx context.Context) (command, environment []string, err error)
	// Dir is the working directory of the program, "" for the current one.
	Dir string
	// Address is the host:port of a running adapter.
	Address string
	// Engine is an engine in Go, behind Serve as its adapter, in this process. It is closed with the engine.
	Engine engine.Engine
	// Transcript, which may be nil, receives all messages as lines: "->" before those
	// of utr, "<-" before messages of adapters. A write error ends the conversation.
	Transcript io.Writer
	// StartLimit limits the time from the start of an adapter to its reply to hello. 0 means defaultStartLimit, 30 s.
	StartLimit time.Duration
	// Unavailable, which may be nil, explains the error of an adapter that has never replied to hello, such as a
	// *StartError. Its result takes the place of the error.
	Unavailable func(error) error
	// Runner is the name and version of the caller, for the adapter's logs.
	Runner string
}

// defaultStartLimit is enough to start a virtual machine on a busy system.
const defaultStartLimit = 30 * time.Second

// Engine is the driver behind an adapter. Methods may be called concurrently.
type Engine struct {
	options Options
	log     *transcript

	installing sync.Mutex // guards Install, Command and Environment of options

	mu       sync.Mutex
	about    *engine.Description    // from the first hello
	room     int                    // by the first hello: how many tests can be open in a conversation; 0 means one
	all      map[*conversation]*use // until it ends
	starting int                    // conversations that will be in all
	changed  chan struct{}          // closed when one of them has started, or failed to
	broke    *ProtocolError         // the first one
	hints    []string               // without duplicates
}

// Findings returns the first protocol error of an adapter, nil without one, and hints about messages that utr accepts
// although the protocol does not allow them.
func (e *Engine) Findings() (broke *ProtocolError, hints []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broke, slices.Clone(e.hints)
}

func (e *Engine) hint(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.hints, text) {
		e.hints = append(e.hints, text)
	}
}

// converse starts a conversation whose protocol errors and hints are kept.
func (e *Engine) converse(in io.Reader, out io.Writer, finish, explain func(error) error) *conversation {
	c := newConversation(e.log)
	c.hint, c.explain = e.hint, explain
	c.finish = func(problem error) error {
		e.mu.Lock()
		if broke := (*ProtocolError)(nil); errors.As(problem, &broke) {
			e.broke = cmp.Or(e.broke, broke)
		}
		if u := e.all[c]; problem != nil && u != nil && u.tests > 1 {
			problem = fmt.Errorf("%w, while %d tests were open in the adapter", problem, u.tests)
		}
		e.mu.Unlock()
		return finish(problem)
	}
	c.start(in, out)
	return c
}

// New creates an engine. It does not start an adapter.
func New(o Options) (*Engine, error) {
	ways := []bool{len(o.Command) > 0, o.Address != "", o.Engine != nil}
	if set := slices.DeleteFunc(ways, func(set bool) bool { return !set }); len(set) != 1 {
		return nil, errors.New("an engine behind the protocol needs either a command, an address or an engine")
	}
	if o.StartLimit <= 0 {
		o.StartLimit = defaultStartLimit
	}
	return &Engine{options: o, log: &transcript{to: o.Transcript}, all: map[*conversation]*use{},
		changed: make(chan struct{})}, nil
}

// Describe implements engine.Engine.
func (e *Engine) Describe(ctx context.Context) (engine.Description, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return engine.Description{}, err
	}
	e.release(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.about, nil
}

// Begin implements engine.Engine.
func (e *Engine) Begin(ctx context.Context) (engine.Test, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	t := &test{engine: e, c: c, inTest: e.number(c), raised: map[*result.Error]int64{}}
	if _, err := t.call(ctx, callBegin, t.inTest, &nothing{}, "begin", nil); err != nil {
		err = t.broken(err)
		e.release(c)
		return nil, err
	}
	return t, nil
}

// Close ends all adapters. It kills those that do not end on their own.
func (e *Engine) Close() error {
	e.mu.Lock()
	all := e.all
	e.all = map[*conversation]*use{}
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

// started starts a conversation with an adapter that replies to hello.
func (e *Engine) started(ctx context.Context) (*conversation, error) {
	c, err := e.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.hello(ctx, c); err != nil {
		c.fail(err)
		if why := c.failure(); !errors.Is(err, why) {
			err = why
		}
		return nil, err
	}
	return c, nil
}

func (e *Engine) start(ctx context.Context) (*conversation, error) {
	switch {
	case e.options.Engine != nil:
		return e.serve(), nil
	case e.options.Address == "":
		command, environment, err := e.program(ctx)
		if err != nil {
			return nil, err
		}
		c, err := start(command, environment, e.options.Dir)
		if err != nil {
			return nil, err
		}
		return e.converse(c.stdout, c.stdin, c.finish, c.words.Explain), nil
	}
	dialer := net.Dialer{Timeout: e.options.StartLimit}
	conn, err := dialer.DialContext(ctx, "tcp", e.options.Address)
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err
		}
		if call := (*os.SyscallError)(nil); errors.As(err, &call) {
			err = call.Err
		}
		return nil, fmt.Errorf("no adapter listens at %s: %w", e.options.Address, err)
	}
	return e.converse(conn, conn, func(problem error) error { return errors.Join(problem, conn.Close()) }, noMore), nil
}

// program returns the installed program.
func (e *Engine) program(ctx context.Context) (command, environment []string, err error) {
	e.installing.Lock()
	defer e.installing.Unlock()
	o := &e.options
	if o.Install != nil {
		if command, environment, err = o.Install(ctx); err != nil {
			return nil, nil, err
		}
		o.Command, o.Environment, o.Install = command, environment, nil
	}
	return o.Command, o.Environment, nil
}

// serve starts a conversation with an adapter in this process.
func (e *Engine) serve() *conversation {
	requests, in := io.Pipe()
	out, replies := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(context.Background(), e.options.Engine, requests, replies)
		_, _ = requests.Close(), replies.Close()
	}()
	return e.converse(out, in, func(problem error) error {
		_, _ = in.Close(), out.Close()
		return errors.Join(problem, <-served)
	}, noMore)
}

// noMore adds nothing to a problem.
func noMore(problem error) error { return problem }

func badHello(format string, args ...any) error {
	return &ProtocolError{err: fmt.Errorf("the adapter answered hello wrongly: "+format, args...)}
}

// hello sends hello and stores the adapter's description.
func (e *Engine) hello(ctx context.Context, c *conversation) error {
	limit := fmt.Errorf("exceeded start-timeout %s", e.options.StartLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, e.options.StartLimit, limit)
	defer cancel()
	var hello helloResult
	if _, err := c.call(ctx, callHello, helloParams{protocol, e.options.Runner}, &hello, "hello", nil); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			return errors.Join(cause, err)
		}
		return err
	}
	switch {
	case hello.Protocol != protocol:
		return fmt.Errorf("the adapter speaks version %d of the protocol, utr speaks %d", hello.Protocol, protocol)
	case hello.ConcurrentTests < 0:
		return badHello("concurrentTests is %d, not a number of tests", hello.ConcurrentTests)
	case hello.Name == "" || len(hello.Operations) == 0:
		return badHello("its name or its operations are empty")
	case !regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`).MatchString(hello.SchemaVersion):
		return badHello("schemaVersion is %q, not a version such as 1.28", hello.SchemaVersion)
	}
	for _, o := range hello.Operations {
		if kind, name, _ := strings.Cut(o, "."); kind == "" || name == "" {
			return badHello("operations contains %q, not the kind of an entity and a name, such as collection.find", o)
		}
	}
	slices.Sort(hello.Operations)
	hello.Operations = slices.Compact(hello.Operations)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.about == nil {
		e.about, e.room = &hello.Description, hello.ConcurrentTests
	}
	return nil
}
