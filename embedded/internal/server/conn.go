package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// conn is a client connection. It answers messages one at a time.
type conn struct {
	server     *Server
	raw        net.Conn // closing it never waits for the client
	socket     net.Conn // raw, or TLS over it
	id         int64
	appName    string
	balanced   bool // the client connected through a load balancer
	ctx        context.Context
	cancel     context.CancelFunc
	client     context.Context // ends with ctx, or when the client disconnects
	clientLeft context.CancelFunc
	hungUp     atomic.Bool    // a fail point has closed the connection: the client has not left
	lastID     int32          // request id of the last sent message
	lastOp     bson.Timestamp // operation time after the last write; zero before the first
	current    atomic.Pointer[operation]

	helloDone   bool     // a hello has succeeded
	helloOk     bool     // the client has sent helloOk: true
	about       bson.Raw // the client's metadata; nil before it has sent them
	internal    bool     // the client is a server
	compression []string
	sasl        *conversation
	user        *User // nil before authentication
}

// close closes the connection and cancels its command.
func (k *conn) close() {
	k.cancel()
	_ = k.raw.Close()
}

// hangUp closes the connection, but its command continues.
func (k *conn) hangUp() {
	k.hungUp.Store(true)
	_ = k.raw.Close()
}

type message struct {
	wire.Header
	body []byte
}

// run answers messages until the connection ends.
func (k *conn) run() {
	defer func() { // limits a panic outside of a command's handler to its connection
		if p := recover(); p != nil {
			k.logEvent(fmt.Sprintf("panicked: %v", p))
		}
	}()
	defer k.server.forget(k)
	defer k.close()
	// A rejected connection is closed before TLS and hello.
	if i := k.server.ingress; i.params.isTrue(connectionLimit) && i.connections.acquire(k.ctx) != nil {
		k.logEvent("rejected by the connection rate limiter")
		return
	}
	k.logEvent("accepted")
	defer k.logEvent("closed")
	messages := make(chan message)
	k.server.cluster.work.Go(func() { k.read(messages) })
	for m := range messages {
		if err := k.message(m.Header, m.body); err != nil || k.ctx.Err() != nil {
			return
		}
	}
}

// Linger is how long a command continues after the end of the client's stream. The client may still be waiting for the
// reply, or may have disconnected.
const Linger = time.Second

// headRead is enough for most messages. A buffer of the default size, for each connection, was a twentieth of all
// allocated memory of a run.
const headRead = 512

// read reads messages even while a command runs, so that a client that disconnects ends its command.
func (k *conn) read(messages chan<- message) {
	defer close(messages)
	in := bufio.NewReaderSize(k.socket, headRead)
	for {
		h, body, err := wire.ReadMessage(in)
		switch {
		case err == nil:
			select {
			case messages <- message{h, body}:
				continue
			case <-k.ctx.Done():
			}
		case errors.Is(err, wire.ErrHTTP):
			_, _ = io.WriteString(k.socket, wire.HTTPReply)
		case k.hungUp.Load():
		case errors.Is(err, io.EOF):
			time.AfterFunc(Linger, k.clientLeft)
		default:
			k.clientLeft()
		}
		return
	}
}

// message answers a message. An error closes the connection.
func (k *conn) message(h wire.Header, body []byte) error {
	if late := k.server.member.Latency; late > 0 {
		sleep(k.ctx, late, nil)
	}
	reply := k.write
	if h.OpCode == wire.OpCompressed {
		plain, content, compressor, err := wire.Decompress(h, body)
		if err != nil {
			return err
		}
		if compressor == wire.Noop && k.server.cluster.Version.Has.RefusesNoop {
			return failpoint.ErrClose
		}
		h, body = plain, content
		reply = func(message []byte) error {
			packed, err := wire.Compress(message, compressor)
			if err != nil {
				return err
			}
			return k.write(packed)
		}
	}
	switch h.OpCode {
	case wire.OpMsg:
		return k.msg(h, body, reply)
	case wire.OpQuery:
		return k.query(h, body, reply)
	case 0:
		return nil // ignored, as by the server
	}
	return failpoint.ErrClose
}

func (k *conn) write(message []byte) error {
	if k.ctx.Err() != nil || k.server.stopped.Load() {
		return failpoint.ErrClose // a killed server must not reply
	}
	_, err := k.socket.Write(message)
	return err
}

func (k *conn) nextID() int32 {
	k.lastID++
	return k.lastID
}

func (k *conn) msg(h wire.Header, body []byte, reply func(message []byte) error) error {
	m, err := wire.ParseMsg(h, body)
	flags := m.Flags & wire.ChecksumPresent
	var refused *wire.Error
	if errors.As(err, &refused) {
		failure := &fault.Error{Code: refused.Code, Message: refused.Text(shown)}
		return reply(wire.AppendMsg(nil, k.nextID(), h.RequestID, flags, k.refusal(failure)))
	}
	if err != nil {
		return err
	}
	x := k.begin(m.Document(), m.Flags&wire.ExhaustAllowed != 0)
	if m.Flags&wire.MoreToCome != 0 {
		x.request.Context = k.ctx // a client that expects no reply may disconnect
	}
	next := x.answer
	for to := h.RequestID; ; to = k.lastID { // each exhaust reply responds to the previous one
		doc, err := next()
		if err != nil || m.Flags&wire.MoreToCome != 0 {
			return err
		}
		flags &^= wire.MoreToCome
		if x.response.Stream != nil {
			flags |= wire.MoreToCome
		}
		if err := reply(wire.AppendMsg(nil, k.nextID(), to, flags, doc)); err != nil || x.response.Stream == nil {
			return err
		}
		next = x.nextReply
	}
}

// refusal returns the reply to a message that is not a command.
func (k *conn) refusal(failure *fault.Error) bson.Raw {
	x := &exchange{conn: k, server: k.server, view: k.server.view()}
	x.out.Failure = failure
	x.describe()
	return x.out.Compose()
}

// shown renders a value as the server does.
func shown(v bson.RawValue) string { return value.Text(value.FromRaw(v)) }

// query answers an OP_QUERY. Clients send hello in it before they know whether the server supports OP_MSG.
func (k *conn) query(h wire.Header, body []byte, reply func(message []byte) error) error {
	namespace, sent, err := wire.ParseQuery(body)
	if err != nil {
		return err
	}
	db, isCommand := strings.CutSuffix(namespace, ".$cmd")
	if !isCommand {
		return failpoint.ErrClose
	}
	if name := firstKey(sent); !wire.IsHello(name) && !k.server.cluster.Version.Has.QueryCommands {
		refused := fault.Errorf(fault.UnsupportedOpQueryCommand,
			"Unsupported OP_QUERY command: %s. The client driver may require an upgrade. "+
				"For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", name)
		return reply(wire.AppendReply(nil, k.nextID(), h.RequestID, k.refusal(refused)))
	}
	body = append(bsoncore.AppendStringElement(slices.Clone(sent[:len(sent)-1]), "$db", db), 0)
	body = bsoncore.UpdateLength(body, 0, int32(len(body)))
	doc, err := k.begin(body, false).answer()
	if err != nil {
		return err
	}
	return reply(wire.AppendReply(nil, k.nextID(), h.RequestID, doc))
}
