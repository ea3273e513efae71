package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxLine bounds a message. The largest document of a server is 16 MiB, and a
	// find can return several.
	maxLine = 64 << 20
	// grace is how long a call may go on after its context has ended. It is shorter
	// than what the runner allows an engine, so that the runner learns why.
	grace = 3 * time.Second
)

// conversation is the exchange of messages between utr and one adapter, as one of them
// sees it. Calls may be made concurrently. After a failure every call returns that
// failure.
type conversation struct {
	lines   chan []byte // to be written
	note    noteLine
	finish  func(problem error) error // in utr: ends the adapter; returns the problem with what else is known of it
	serve   func(m message) error     // in an adapter: begins to serve a call of utr
	ended   chan struct{}             // closed after why is set
	written chan struct{}             // closed when nothing more is written

	why error

	mu   sync.Mutex // guards what follows
	last int64
	open map[int64]chan message // by request without a reply: its reply, and calls of callback before that
	over bool
}

// converse begins a conversation with an adapter. It reads until in ends; finish must
// make it end.
func converse(in io.Reader, out io.Writer, finish func(error) error, note noteLine) *conversation {
	c := newConversation(out, note)
	c.finish = finish
	go func() { c.fail(c.read(in)) }()
	return c
}

func newConversation(out io.Writer, note noteLine) *conversation {
	c := &conversation{lines: make(chan []byte), note: note, ended: make(chan struct{}), written: make(chan struct{}), open: map[int64]chan message{}}
	go c.write(out)
	return c
}

func (c *conversation) write(out io.Writer) {
	defer close(c.written)
	for {
		select {
		case line := <-c.lines:
			err := c.note(FromRunner, line)
			if err == nil {
				if _, err = out.Write(line); err != nil {
					err = fmt.Errorf("cannot write to the adapter: %w", err)
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

// read reads messages until one of them is wrong, or none comes any more.
func (c *conversation) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines, maxLine)
		if err == nil {
			err = c.note(FromAdapter, line)
		}
		if err == nil {
			err = c.take(line)
		}
		if err != nil {
			return err
		}
	}
}

// errClosed reports that an adapter closed its output.
var errClosed = errors.New("the adapter closed its output")

// readLine reads a line without its end. A line that is cut off is an error.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("a message of more than %d MiB", limit>>20)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, fmt.Errorf("%w in the middle of a message: %s", errClosed, excerpt(line))
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, errClosed
		}
	}
}

// excerpt quotes the beginning of a text for an error.
func excerpt(text []byte) string {
	const limit = 200
	if len(text) > limit {
		return fmt.Sprintf("%q…", text[:limit])
	}
	return fmt.Sprintf("%q", text)
}

// take hands a message to the call that it belongs to.
func (c *conversation) take(line []byte) error {
	var m message
	if err := decode(line, &m); err != nil {
		return fmt.Errorf("a line that is not a message (%w): %s", err, excerpt(line))
	}
	var id int64
	switch {
	case m.JSONRPC != version:
		return fmt.Errorf("a message without \"jsonrpc\":%q: %s", version, excerpt(line))
	case m.Method != "" && c.serve != nil:
		return c.serve(m)
	case m.Method == "" && m.ID == nil && m.Error != nil:
		return fmt.Errorf("the adapter did not understand a message: %w", m.Error)
	case m.ID == nil:
		return fmt.Errorf("a message without an id: %s", excerpt(line))
	case m.Method == callCallback:
		var p callbackParams
		if err := decode(m.Params, &p); err != nil {
			return fmt.Errorf("the parameters of callback: %w", err)
		}
		id = p.Do
	case m.Method != "":
		return fmt.Errorf("an unknown call: %s", excerpt(line))
	case (m.Result == nil) == (m.Error == nil):
		return fmt.Errorf("a reply must have either a result or an error: %s", excerpt(line))
	default:
		id = *m.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inbox := c.open[id]
	if inbox == nil {
		return fmt.Errorf("a message for request %d, which is not open: %s", id, excerpt(line))
	}
	if m.Method == "" {
		delete(c.open, id)
	}
	select {
	case inbox <- m:
		return nil
	default:
		return fmt.Errorf("a callback of request %d before the one before has ended", id)
	}
}

// decode reads JSON strictly: a field that the protocol does not have is an error.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

// call makes a call and decodes its result. callback, which may be nil, serves the
// adapter's calls of callback for it. The end of ctx cancels it: the adapter may then
// reply at once, and has failed if it does not reply within the grace. An adapter cannot
// cancel its own calls, and only stops waiting.
func (c *conversation) call(ctx context.Context, method string, params, into any, during string, callback func() callbackResult) (id int64, err error) {
	id, inbox, err := c.register()
	if err != nil {
		return id, err
	}
	line, err := message{ID: &id, Method: method}.line(params)
	if err != nil {
		c.fail(err)
		return id, err
	}
	out, over := c.lines, ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case out <- line:
			out = nil
		case m := <-inbox:
			switch {
			case m.Method == callCallback && callback == nil:
				c.fail(fmt.Errorf("a callback for %s, which has none", during))
			case m.Method == callCallback:
				if line, err = (message{ID: m.ID}).line(callback()); err != nil {
					c.fail(err)
				}
				out = c.lines
			case m.Error != nil:
				return id, fmt.Errorf("%s: %w", during, m.Error)
			default:
				if err := decode(m.Result, into); err != nil {
					c.fail(fmt.Errorf("the result of %s: %w: %s", during, err, excerpt(m.Result)))
					return id, c.failure()
				}
				return id, nil
			}
		case <-over:
			if c.serve != nil {
				return id, ctx.Err()
			}
			over, late = nil, time.After(grace)
			if out == nil {
				if line, err = (message{Method: noteCancel}).line(cancelParams{ID: id}); err == nil {
					out = c.lines
				}
			}
		case <-late:
			c.fail(fmt.Errorf("no reply to %s within %s after it was cancelled", during, grace))
		case <-c.ended:
			return id, c.failure()
		}
	}
}

// fail ends the conversation. Calls return the first problem.
func (c *conversation) fail(problem error) {
	c.mu.Lock()
	first := !c.over
	c.over = true
	c.mu.Unlock()
	if first {
		if c.finish != nil {
			problem = c.finish(problem)
		}
		c.why = problem
		close(c.ended)
	}
}

// failure waits until the conversation has ended, and says why.
func (c *conversation) failure() error {
	<-c.ended
	return c.why
}

// failed reports whether the conversation is over.
func (c *conversation) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

func (c *conversation) register() (int64, chan message, error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return 0, nil, c.failure()
	}
	defer c.mu.Unlock()
	c.last++
	inbox := make(chan message, 2)
	c.open[c.last] = inbox
	return c.last, inbox, nil
}
