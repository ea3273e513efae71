package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// conn is a connection of a client, and the one to the server behind it.
type conn struct {
	front    *front
	toClient net.Conn
	toServer net.Conn
	in       *bufio.Reader // of the client
	peeked   chan struct{} // closed when nothing else reads in
	ctx      context.Context
	cancel   context.CancelFunc

	writing sync.Mutex // to the client

	mu         sync.Mutex
	failPoints *failpoint.Registry // nil until the service behind a load balancer is known
	appName    string
	number     int64              // the server's number of the connection
	lastOp     bson.Timestamp     // after the last write; zero before the first
	expected   map[int32]*pending // by the id of the message to which the reply responds
}

// pending is a command whose reply the proxy changes or needs.
type pending struct {
	request
	row        *commands.Row
	start      time.Time
	undecided  bool              // no fail point has been evaluated yet, because the service is not known
	failure    failpoint.Failure // of a fail point
	labels     []string          // of a fail point; nil if none has set labels
	checkedOut bool              // the cursor of a getMore, when a fail point fails the command
	topology   bson.RawValue     // topologyVersion in the reply before, if it is part of a stream of hello
}

func newConn(f *front, toClient, toServer net.Conn) *conn {
	k := &conn{front: f, toClient: toClient, toServer: toServer, in: bufio.NewReader(toClient),
		expected: map[int32]*pending{}}
	if !f.proxy.Balanced {
		k.failPoints = f.proxy.registry(f.current().name)
	}
	k.ctx, k.cancel = context.WithCancel(f.proxy.ctx)
	return k
}

var errLost = errors.New("the server has closed the connection")

// run serves the connection until it ends. It returns errLost if the server has ended it.
func (k *conn) run() (ended error) {
	defer k.cancel()
	left := make(chan struct{}) // closed when the client has ended the connection
	var replies sync.WaitGroup
	replies.Go(func() {
		defer k.close()
		ended = k.replies()
		select {
		case <-left:
			ended = nil
		default:
		}
	})
	half, ok := k.toServer.(interface{ CloseWrite() error })
	err := k.requests()
	close(left)
	// When the client closes its end, the server can still execute and answer what was sent before.
	if !errors.Is(err, io.EOF) || !ok || half.CloseWrite() != nil {
		k.close()
	}
	replies.Wait()
	return ended
}

func (k *conn) close() { _, _ = k.toClient.Close(), k.toServer.Close() }

// requests passes on the client's messages until its stream ends.
func (k *conn) requests() error {
	for {
		if k.peeked != nil {
			<-k.peeked
		}
		message, err := wire.ReadWhole(k.in)
		if err != nil {
			return passOn(k.toServer, message, k.in)
		}
		if err := k.request(message); err != nil {
			return err
		}
	}
}

// passOn passes on bytes that are not a message: the receiver refuses them. It returns io.EOF at the end of the stream.
func passOn(to io.Writer, read []byte, rest io.Reader) error {
	_, err := to.Write(read)
	if err == nil {
		_, err = io.Copy(to, rest)
	}
	return cmp.Or(err, io.EOF)
}

// request passes on a message, or answers it.
func (k *conn) request(message []byte) error {
	p := k.front.proxy
	r, ok := parse(message)
	if !ok {
		_, err := k.toServer.Write(message)
		return err
	}
	x := &pending{request: r, row: p.commands[r.name], start: time.Now()}
	if x.row == nil {
		x.row = &commands.Row{Name: r.name}
	}
	hello := wire.IsHello(r.name)
	if hello {
		k.noteApplication(&r)
	}
	if r.name == "aggregate" && value.Has(r.Body, "pipeline", "0", "$currentOp") {
		p.held.Settled(k.ctx) // the server lists a command only after it has begun
	}
	p.sessions.see(r.Body)
	x.undecided = k.registry() == nil
	if !x.undecided {
		doc, err := k.fail(x, true)
		if err != nil {
			return err
		} else if doc != nil {
			return k.answer(x, doc)
		}
	}
	if answer := answers[r.name]; answer != nil {
		if doc := answer(k, x); doc != nil {
			return k.answer(x, doc)
		}
	}
	exhaust := r.Flags&wire.ExhaustAllowed != 0
	if (hello || exhaust || x.undecided || kills[r.name] != nil || x.row.AcceptsWriteConcern() || x.failure.LoseReply ||
		x.labels != nil) && r.Flags&wire.MoreToCome == 0 {
		k.expect(x)
	}
	_, err := k.toServer.Write(message)
	return err
}

// answer sends a reply to a client that expects one.
func (k *conn) answer(x *pending, doc bson.Raw) error {
	if x.Flags&wire.MoreToCome != 0 {
		return nil
	}
	return k.write(x.compose(doc))
}

func (k *conn) write(message []byte) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	_, err := k.toClient.Write(message)
	return err
}

func (k *conn) registry() *failpoint.Registry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failPoints
}

// noteApplication records the client's application name. Fail points match the name in the first hello, even if that
// fails.
func (k *conn) noteApplication(r *request) {
	name := value.TextAt(r.Body, "client", "application", "name")
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.appName == "" {
		k.appName = name
	}
}

// block blocks a command. If nothing else reads the client's messages, it ends early when the client disconnects,
// unless the client expects no reply.
func (k *conn) block(x *pending, reads bool) error {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	if reads && x.Flags&wire.MoreToCome == 0 && !x.failure.LoseReply {
		k.peeked = make(chan struct{})
		go func(done chan<- struct{}) {
			defer close(done)
			if _, err := k.in.Peek(1); err == io.EOF {
				time.AfterFunc(server.Linger, cancel)
			} else if err != nil {
				cancel()
			}
		}(k.peeked)
	}
	return k.front.proxy.held.Wait(ctx, k.front, x.Body, x.failure.Block)
}

// replies passes on the server's messages until its stream ends. It then returns errLost.
func (k *conn) replies() error {
	defer k.cancel()
	for in := bufio.NewReader(k.toServer); ; {
		message, err := wire.ReadWhole(in)
		if err != nil {
			_ = passOn(k.toClient, message, in)
			return errLost
		}
		message, next, err := k.reply(message)
		if len(message) > 0 && k.write(message) != nil || err != nil || next != nil && !k.stream(next) {
			return failpoint.ErrClose
		}
	}
}

// stream evaluates the fail points for the next reply of a stream, as for another command. It reports
// whether the connection continues.
func (k *conn) stream(next *pending) bool {
	doc, err := k.fail(next, false)
	if doc != nil {
		_ = k.answer(next, doc) // the connection ends in any case
	}
	if err != nil || doc != nil {
		return false
	}
	k.expect(next)
	return true
}

// expect makes reply get the reply to a message.
func (k *conn) expect(x *pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expected[x.RequestID] = x
}

// reply returns what the client gets in place of a message of the server, and, if it is part of a stream, what stands
// for the next one. An error closes the connection.
func (k *conn) reply(message []byte) (_ []byte, next *pending, _ error) {
	h, _, err := wire.Split(message)
	if err != nil {
		return message, nil, err
	}
	k.mu.Lock()
	x := k.expected[h.ResponseTo]
	delete(k.expected, h.ResponseTo)
	k.mu.Unlock()
	if x == nil {
		return message, nil, nil
	}
	r, ok := parseReply(message)
	if !ok {
		return message, nil, nil
	}
	version := r.Body.Lookup("topologyVersion")
	if !x.topology.IsZero() && x.failure.Block > 0 {
		if !version.Equal(x.topology) { // a server would have found the change after the block
			x.failure.Block -= time.Since(x.start)
		}
		if err := k.block(x, false); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case k.commits(x, r.Body), x.failure.LoseReply:
		return nil, nil, failpoint.ErrClose
	case wire.IsHello(x.name):
		r.Body = k.hello(r.Body)
	case kills[x.name] != nil:
		if succeeded(r.Body) { // a server ends nothing if it refuses the list
			k.kill(x)
		}
	default:
		r.Body = k.written(x, r.Body)
		if id, ok := r.Body.Lookup("cursor", "id").AsInt64OK(); ok && value.Has(x.Body, "pipeline", "0", "$changeStream") {
			k.front.proxy.streams.Store(id, true)
		}
	}
	if x.undecided {
		x.undecided = false
		doc, err := k.fail(x, false)
		if err != nil {
			return nil, nil, err
		} else if doc != nil {
			x.labels = nil // the reply has them
			r.Body, r.Flags = doc, r.Flags&^wire.MoreToCome
		}
	}
	r.Body = k.relabeled(x, r.Body)
	if r.Flags&wire.MoreToCome != 0 {
		again := *x
		again.RequestID, again.start, again.labels, again.failure = h.RequestID, time.Now(), nil, failpoint.Failure{}
		if wire.IsHello(x.name) {
			again.topology = version
		}
		next = &again
	}
	return r.bytes(), next, nil
}
