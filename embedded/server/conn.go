package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/wire"
)

// conn is one client connection: what the handshake said, who has
// authenticated, and the loop that answers messages one after the other.
type conn struct {
	server   *Server
	raw      net.Conn // what close closes: it never waits for the client
	socket   net.Conn // raw, or TLS upon it
	id       int64
	appName  string
	balanced bool // it came through a load balancer
	ctx      context.Context
	cancel   context.CancelFunc
	client   context.Context // ends with ctx, or when the client has left
	leaves   context.CancelFunc
	hung     atomic.Bool // a fail point has closed the connection: the client has not left
	once     sync.Once
	lastID   int32          // of the messages sent
	lastOp   bson.Timestamp // the cluster's time after the last write; zero before the first
	current  atomic.Pointer[operation]
	waiting  atomic.Int32 // messages that were read and are not answered yet

	helloDone   bool // a balanced connection has said loadBalanced
	helloOk     bool // the client knows hello, and the words that came with it
	metadata    bool // the client has sent its metadata
	compression []string
	sasl        *conversation
	user        *User // who has authenticated; nil before that
}

func newConn(s *Server, socket net.Conn, balanced bool) *conn {
	k := &conn{server: s, raw: socket, socket: socket, balanced: balanced, id: s.lastConn.Add(1)}
	k.ctx, k.cancel = context.WithCancel(s.cluster.ctx)
	k.client, k.leaves = context.WithCancel(k.ctx)
	if s.process.TLS != nil {
		k.socket = tls.Server(socket, s.process.TLS)
	}
	return k
}

// close breaks the connection, whatever it is doing.
func (k *conn) close() {
	k.once.Do(func() {
		k.cancel()
		_ = k.raw.Close() // nothing can be done about it
	})
}

// hangUp closes the connection and lets its command go on.
func (k *conn) hangUp() {
	k.hung.Store(true)
	_ = k.raw.Close() // nothing can be done about it
}

// message is what a client has sent.
type message struct {
	wire.Header
	body []byte
}

// run answers messages until the client leaves or has to.
func (k *conn) run() {
	defer k.survive()
	defer k.server.forget(k)
	defer k.close()
	if !k.establish() {
		k.logEvent("rejected by the connection rate limiter")
		return
	}
	k.logEvent("accepted")
	defer k.logEvent("closed")
	messages := make(chan message)
	k.server.cluster.work.Go(func() { k.read(messages) })
	for m := range messages {
		if err := k.message(m.Header, m.body); err != nil || k.server.retired.Load() || k.ctx.Err() != nil {
			return
		}
		k.waiting.Add(-1)
	}
}

// grace is how long a command may still take whose client has said that it sends no more:
// that one may wait for the answer, or be gone.
const grace = time.Second

// read reads what the client sends, also while a command runs: only so is it noticed that
// the client has left.
func (k *conn) read(messages chan<- message) {
	defer close(messages)
	in := bufio.NewReader(k.socket)
	for {
		h, body, err := wire.ReadMessage(in)
		switch {
		case err == nil:
			k.waiting.Add(1)
			select {
			case messages <- message{h, body}:
				continue
			case <-k.ctx.Done():
			}
		case errors.Is(err, wire.ErrHTTP):
			_, _ = io.WriteString(k.socket, wire.HTTPAnswer) // we close anyway
		case k.hung.Load():
		case errors.Is(err, io.EOF):
			time.AfterFunc(grace, k.leaves)
		default:
			k.leaves()
		}
		return
	}
}

// survive keeps what fails inside, outside of a command's handler, to this connection.
func (k *conn) survive() {
	if p := recover(); p != nil {
		k.logEvent(fmt.Sprintf("failed inside: %v", p))
	}
}

// message answers one message.
func (k *conn) message(h wire.Header, body []byte) error {
	if late := k.server.process.Latency; late > 0 {
		sleep(k.ctx, late, nil)
	}
	reply := writer{conn: k}
	if h.OpCode == wire.OpCompressed {
		var err error
		if h, body, reply.compressor, err = wire.Decompress(h, body); err != nil {
			return err
		}
		reply.compressed = true
	}
	switch h.OpCode {
	case wire.OpMsg:
		return k.msg(h, body, reply)
	case wire.OpQuery:
		return k.query(h, body, reply)
	case 0:
		return nil // ignored, as the server does
	}
	return command.ErrClose
}

// msg answers an OP_MSG.
func (k *conn) msg(h wire.Header, body []byte, reply writer) error {
	m, err := wire.ParseMsg(h, body)
	flags := m.Flags & wire.ChecksumPresent
	var refused *command.Error
	if errors.As(err, &refused) {
		doc := k.compose(k.server.view(), nil, nil, refused)
		return reply.msg(h.RequestID, flags, doc)
	}
	if err != nil {
		return err
	}
	x, err := k.begin(m.Single(), m.Flags&wire.ExhaustAllowed != 0)
	if err != nil {
		return err
	}
	if m.Flags&wire.MoreToCome != 0 {
		x.request.Context = k.ctx // a client that expects no answer may leave
	}
	doc, err := x.answer()
	if err != nil {
		return err
	}
	if m.Flags&wire.MoreToCome != 0 {
		return nil
	}
	// An exhaust reply answers the one before it.
	for to := h.RequestID; ; to = k.lastID {
		if x.streams() {
			flags |= wire.MoreToCome
		} else {
			flags &^= wire.MoreToCome
		}
		if err := reply.msg(to, flags, doc); err != nil || !x.streams() {
			return err
		}
		if doc, err = x.again(); err != nil {
			return err
		}
	}
}

// helloNames are the commands that an OP_QUERY may hold.
var helloNames = map[string]bool{"hello": true, "isMaster": true, "ismaster": true}

// query answers an OP_QUERY, with which clients begin that do not know yet whether the
// server knows OP_MSG.
func (k *conn) query(h wire.Header, body []byte, reply writer) error {
	namespace, sent, err := wire.ParseQuery(body)
	if err != nil {
		return err
	}
	db, isCommand := strings.CutSuffix(namespace, ".$cmd")
	if !isCommand {
		return command.ErrClose
	}
	if name := firstKey(sent); !helloNames[name] {
		return reply.reply(h.RequestID, k.compose(k.server.view(), nil, nil, command.Errorf(command.CodeUnsupportedOpQueryCommand,
			"Unsupported OP_QUERY command: %s. The client driver may require an upgrade. "+
				"For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", name)))
	}
	var doc bson.D
	if err := bson.Unmarshal(sent, &doc); err != nil {
		return err
	}
	x, err := k.begin(marshal(append(doc, bson.E{Key: "$db", Value: db})), false)
	if err != nil {
		return err
	}
	answer, err := x.answer()
	if err != nil {
		return err
	}
	return reply.reply(h.RequestID, answer)
}

// writer writes replies in the form that the request had.
type writer struct {
	conn       *conn
	compressed bool
	compressor wire.Compressor
}

func (w writer) write(message []byte) (err error) {
	if w.compressed {
		if message, err = wire.Compress(message, w.compressor); err != nil {
			return err
		}
	}
	if w.conn.ctx.Err() != nil {
		return command.ErrClose // the dead do not answer
	}
	_, err = w.conn.socket.Write(message)
	return err
}

// msg and reply write an OP_MSG and an OP_REPLY.
func (w writer) msg(responseTo int32, flags wire.Flags, doc bson.Raw) error {
	w.conn.lastID++
	return w.write(wire.AppendMsg(make([]byte, 0, len(doc)+32), w.conn.lastID, responseTo, flags, doc))
}

func (w writer) reply(responseTo int32, doc bson.Raw) error {
	w.conn.lastID++
	return w.write(wire.AppendReply(nil, w.conn.lastID, responseTo, doc))
}
