package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/internal/text/jsonerror"
)

const (
	// maxLine limits the length of a message. Documents have up to 16 MiB, and a find can return several.
	maxLine = 64 << 20
	// grace is how long a call may continue after its context has ended. It is shorter
	// than the grace period of the runner, so that the runner reports the reason.
	grace = 3 * time.Second
)

// conversation is one side of the exchange of messages between utr and an adapter.
// Calls may be made concurrently. After a failure, every call returns that failure.
type conversation struct {
	lines   chan []byte // to be written
	log     *transcript
	finish  func(problem error) error // in utr: ends the adapter and adds details to the problem
	explain func(problem error) error // in utr: adds details to the problem while the adapter continues
	hint    func(string)              // about what utr accepts and the protocol does not allow
	serve   func(m message) error     // in an adapter: starts a call of utr
	ended   chan struct{}             // closed after why is set
	written chan struct{}             // closed when write has returned

	why error

	mu     sync.Mutex // guards the fields below
	last   int64
	open   map[int64]chan message // by open request: callbacks and the reply
	failed bool
}

func newConversation(log *transcript) *conversation {
	return &conversation{hint: func(string) {}, lines: make(chan []byte), log: log, ended: make(chan struct{}),
		written: make(chan struct{}), open: map[int64]chan message{}}
}

// start starts a conversation with an adapter. It reads until in ends. finish must end it.
func (c *conversation) start(in io.Reader, out io.Writer) {
	go c.write(out)
	go func() { c.fail(c.read(in)) }()
}

func (c *conversation) write(out io.Writer) {
	defer close(c.written)
	for {
		select {
		case line := <-c.lines:
			err := c.log.note(fromRunner, line)
			if err == nil {
				if _, err = out.Write(line); err != nil {
					err = fmt.Errorf("cannot write to the adapter: %w", err)
					select { // an adapter that has ended also closed its output, and the end of its output is a better reason
					case <-c.ended:
					case <-time.After(grace):
					}
				}
			}
			if err != nil {
				c.fail(err)
				return
			}
		case <-c.ended:
			return
		}
	}
}

// read reads messages until one is invalid or in ends.
func (c *conversation) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		if err := c.log.note(fromAdapter, lines.Bytes()); err != nil {
			return err
		}
		if err := c.dispatch(lines.Bytes()); err != nil {
			return &ProtocolError{err: err}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("a message of more than %d MiB", maxLine>>20)
	case errors.Is(err, errClosed):
		return err
	}
	return errClosed
}

// errClosed reports that an adapter closed its output.
var errClosed = errors.New("the adapter closed its output")

// wholeLines is bufio.ScanLines, except that an incomplete line is an error.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if atEOF && len(data) > 0 && !bytes.ContainsRune(data, '\n') {
		return 0, nil, fmt.Errorf("%w in the middle of a message: %s", errClosed, jsonerror.Excerpt(data))
	}
	return bufio.ScanLines(data, atEOF)
}

// dispatch delivers a message to its call.
func (c *conversation) dispatch(line []byte) error {
	var m message
	if err := decode(line, &m); err != nil {
		return notAMessage(line, err)
	}
	var id int64
	switch {
	case m.JSONRPC != version:
		return &ProtocolError{fmt.Errorf(`a message without "jsonrpc":%q: %s`, version, jsonerror.Excerpt(line)), aMessage}
	case m.Method != "" && c.serve != nil:
		return c.serve(m)
	case m.Method == "" && m.ID == nil && m.Error != nil:
		return fmt.Errorf("the adapter did not understand a message: %w", m.Error)
	case m.ID == nil:
		return &ProtocolError{fmt.Errorf("a message without the id of a request: %s", jsonerror.Excerpt(line)), aMessage}
	case m.Method == callCallback:
		var p callbackParams
		if err := decode(m.Params, &p); err != nil {
			return fmt.Errorf("the parameters of callback: %w", err)
		}
		id = p.Do
	case m.Method != "":
		return &ProtocolError{fmt.Errorf("a request for the call %s, which only utr makes: %s", m.Method,
			jsonerror.Excerpt(line)),
			"a reply, " + aMessage}
	case (m.Result == nil) == (m.Error == nil):
		return &ProtocolError{fmt.Errorf("a reply without either a result or an error: %s", jsonerror.Excerpt(line)),
			aMessage}
	default:
		id = *m.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inbox := c.open[id]
	if inbox == nil {
		return fmt.Errorf("a message for request %d, which is not open: %s", id, jsonerror.Excerpt(line))
	}
	if m.Method == "" {
		delete(c.open, id)
	}
	select {
	case inbox <- m:
		return nil
	default:
		return fmt.Errorf("a callback of request %d before its previous callback has ended", id)
	}
}

// breach is the error of a call that makes the adapter unusable, although its other calls can continue.
type breach struct{ error }

func (b breach) Unwrap() error { return b.error }

// call makes a call and decodes its result. callback, which may be nil, serves the adapter's callbacks during the
// call. The end of ctx cancels the call: an adapter that does not reply within grace has failed. The adapter side
// cannot cancel a call, and only stops waiting.
func (c *conversation) call(ctx context.Context, method string, params, into any, during string,
	callback func() callbackResult) (id int64, err error) {
	id, inbox, err := c.register()
	if err != nil {
		return id, err
	}
	line, err := message{ID: &id, Method: method}.line(params)
	if err != nil {
		c.fail(err)
		return id, err
	}
	out, canceled := c.lines, ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case out <- line:
			out = nil
		case m := <-inbox:
			switch {
			case m.Method == callCallback && callback == nil:
				return id, breach{fmt.Errorf("a callback for %s, which has none", during)}
			case m.Method == callCallback:
				if line, err = (message{ID: m.ID}).line(callback()); err != nil {
					c.fail(err)
				}
				out = c.lines
			case m.Error != nil:
				return id, fmt.Errorf("%s: %w", during, m.Error)
			default:
				return id, c.accept(m.Result, into, method, during)
			}
		case <-canceled:
			if c.serve != nil {
				return id, ctx.Err()
			}
			canceled, late = nil, time.After(grace)
			if out == nil {
				if line, err = (message{Method: noteCancel}).line(cancelParams{ID: id}); err == nil {
					out = c.lines
				}
			}
		case <-late:
			return id, breach{noReply(ctx, during)}
		case <-c.ended:
			return id, c.failure()
		}
	}
}

// accept decodes the result of a call.
func (c *conversation) accept(data []byte, into any, method, during string) error {
	const hint = "the adapter answers %s with []%s where {} belongs; utr accepts it"
	if isEmptyArray(data) {
		data = []byte("{}")
		c.hint(fmt.Sprintf(hint, method, ""))
	}
	err := decode(data, into)
	if missing := lacks(reflect.ValueOf(into).Elem(), data); err == nil && missing != "" {
		err = errors.New(missing)
	}
	if err != nil {
		return breach{badResult(during, data, into, err)}
	}
	for _, at := range arraysFor(reflect.TypeOf(into), data, "") {
		c.hint(fmt.Sprintf(hint, method, " at "+at))
	}
	return nil
}

// noReply is the error of a call that did not end although it was canceled. It begins with the time limit that passed.
func noReply(ctx context.Context, during string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("no reply to %s within %s after it was canceled", during, grace)
	}
	return fmt.Errorf("%w: the adapter did not reply to %s", cause, during)
}

// fail ends the conversation. Calls return the first problem.
func (c *conversation) fail(problem error) {
	c.mu.Lock()
	first := !c.failed
	c.failed = true
	c.mu.Unlock()
	if first {
		if c.finish != nil {
			problem = c.finish(problem)
		}
		c.why = problem
		close(c.ended)
	}
}

// failure waits until the conversation has ended and returns the problem.
func (c *conversation) failure() error {
	<-c.ended
	return c.why
}

// hasFailed reports whether the conversation has ended or is ending.
func (c *conversation) hasFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *conversation) register() (int64, chan message, error) {
	c.mu.Lock()
	if c.failed {
		c.mu.Unlock()
		return 0, nil, c.failure()
	}
	defer c.mu.Unlock()
	c.last++
	inbox := make(chan message, 2)
	c.open[c.last] = inbox
	return c.last, inbox, nil
}

// The marks of messages from utr and from an adapter in transcripts.
const (
	fromRunner  = "->"
	fromAdapter = "<-"
)

// transcript writes the messages of all conversations to a writer. The writer may be nil.
type transcript struct {
	mu sync.Mutex
	to io.Writer
}

// note records a message that utr sends or receives.
func (t *transcript) note(from string, line []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return nil
	}
	if _, err := fmt.Fprintf(t.to, "%s %s\n", from, bytes.TrimRight(line, "\n")); err != nil {
		return fmt.Errorf("cannot write the transcript: %w", err)
	}
	return nil
}
