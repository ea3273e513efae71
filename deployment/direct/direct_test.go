package direct

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	opMsg      = 2013
	headLength = 16 + 4 + 1 // header, flags, and kind of the first section
)

// replyOf encodes a message with a document. A size other than 0 replaces the real one.
func replyOf(t testing.TB, op, size uint32, doc bson.D) []byte {
	t.Helper()
	message := append(make([]byte, headLength), testkit.Raw(t, doc)...)
	if size == 0 {
		size = uint32(len(message))
	}
	binary.LittleEndian.PutUint32(message, size)
	binary.LittleEndian.PutUint32(message[8:], requestID)
	binary.LittleEndian.PutUint32(message[12:], op)
	return message
}

// Only a MongoDB server's reply is accepted.
func TestReplies(t *testing.T) {
	fine := bson.D{{Key: "ok", Value: 1.0}}
	cut := replyOf(t, opMsg, 0, fine)
	cut[0] -= 3
	sequence := replyOf(t, opMsg, 0, fine)
	sequence[headLength-1] = 1
	other := replyOf(t, opMsg, 0, fine)
	other[8]++
	refused := bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 74}, {Key: "codeName", Value: "NodeNotFound"},
		{Key: "errmsg", Value: "no quorum"}}
	for _, r := range []struct {
		reason string
		reply  []byte
		code   int32  // of the server's error
		err    string // part of any error
	}{
		{"a success", replyOf(t, opMsg, 0, fine), 0, ""},
		{"ok as an integer", replyOf(t, opMsg, 0, bson.D{{Key: "ok", Value: 1}}), 0, ""},
		{"an error", replyOf(t, opMsg, 0, refused), 74, "no quorum"},
		{"a reply without ok is not a success", replyOf(t, opMsg, 0, bson.D{{Key: "n", Value: 1}}), 0, "neither ok: 1"},
		{"nothing", nil, 0, "EOF"},
		{"half a header", make([]byte, 7), 0, "EOF"},
		{"another protocol", []byte("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), 0, errReply.Error()},
		{"another opcode", replyOf(t, 1, 0, fine), 0, errReply.Error()},
		{"to another request", other, 0, "the reply is to message 2"},
		{"another section", sequence, 0, errReply.Error()},
		{"smaller than its header", replyOf(t, opMsg, 3, fine), 0, errReply.Error()},
		{"larger than any reply", replyOf(t, opMsg, 1<<31, bson.D{}), 0, errReply.Error()},
		{"a truncated message", replyOf(t, opMsg, 1000, fine), 0, "EOF"},
		{"a truncated document", cut, 0, errReply.Error()},
	} {
		reply, err := read(bytes.NewReader(r.reply))
		if err == nil {
			err = refusal(reply)
		}
		var refused mongo.CommandError
		_ = errors.As(err, &refused)
		testkit.Equal(t, r.reason, []any{refused.Code, err != nil}, []any{r.code, r.err != ""})
		if err != nil {
			testkit.Contains(t, err.Error(), r.err)
		}
	}
}

// An answer differs from a network error even without a code, such as an answer of another vendor's server.
func TestAnswers(t *testing.T) {
	answer := func(code int32, message string) error {
		return refusal(testkit.Raw(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: code},
			{Key: "errmsg", Value: message}}))
	}
	for _, r := range []struct {
		reason          string
		err             error
		refused, absent bool
	}{
		{"success", nil, false, false},
		{"the code of MongoDB", answer(26, "Collection db.c does not exist"), true, true},
		{"the message of servers without codes", answer(0, "ns not found"), true, true},
		{"another code", answer(59, "no such command: 'drop'"), true, false},
		{"another message", answer(0, "not now"), true, false},
		{"a driver's network error", mongo.CommandError{Message: "ns not found: EOF", Labels: []string{"NetworkError"}},
			false, false},
		{"another error", errors.New("EOF"), false, false},
	} {
		testkit.Equal(t, r.reason, []bool{Refused(r.err), Absent(r.err)}, []bool{r.refused, r.absent})
	}
}

// Run works with and without TLS. It waits for a silent server until the context ends.
func TestRun(t *testing.T) {
	for _, secure := range []bool{false, true} {
		d, err := embedded.Start(t.Context(), embedded.Options{TLS: secure})
		testkit.Check(t, err)
		reply, err := Run(testkit.Context(t), d.Hosts()[0], d.ClientTLS(), "admin", bson.D{{Key: "hello", Value: 1}})
		testkit.Check(t, err)
		testkit.Equal(t, "isWritablePrimary", reply.Lookup("isWritablePrimary").Boolean(), true)
		_, err = Run(testkit.Context(t), d.Hosts()[0], d.ClientTLS(), "admin", bson.D{{Key: "nonsense", Value: 1}})
		testkit.ErrorContains(t, err, "no such command")
		testkit.Check(t, d.Close())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	go func() {
		if conn, err := l.Accept(); err == nil {
			cancel(errors.New("enough"))
			defer func() { _ = conn.Close() }()
			<-t.Context().Done()
		}
	}()
	_, err = Run(ctx, l.Addr().String(), nil, "admin", bson.D{{Key: "ping", Value: 1}})
	testkit.ErrorContains(t, err, "enough")
}

// Any accepted input is valid BSON.
func FuzzRead(f *testing.F) {
	f.Add(replyOf(f, opMsg, 0, bson.D{{Key: "ok", Value: 1.0}}))
	f.Add(replyOf(f, opMsg, 0, bson.D{})[:20])
	f.Add([]byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 2)))
	f.Add(make([]byte, headLength))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) >= 4 && binary.LittleEndian.Uint32(reply) > 1<<16 {
			return // read allocates that many bytes
		}
		if doc, err := read(bytes.NewReader(reply)); err == nil && doc.Validate() != nil {
			t.Errorf("%x is accepted as a reply", reply)
		}
	})
}
