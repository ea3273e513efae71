package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// replyTo makes a message of the server: OP_MSG with one document, answering a
// request.
func replyTo(request int32, opcode int32, body []byte) []byte {
	out := make([]byte, headerLength, headerLength+5+len(body))
	binary.LittleEndian.PutUint32(out[8:], uint32(request))
	binary.LittleEndian.PutUint32(out[12:], uint32(opcode))
	out = append(out, 0, 0, 0, 0) // flags
	out = append(out, 0)          // the kind of a document
	out = append(out, body...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return out
}

const opMsg = 2013

func document(t testing.TB, d bson.D) []byte {
	t.Helper()
	text, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLink(t *testing.T) {
	well := document(t, bson.D{{Key: "ok", Value: 1.0}, {Key: "isWritablePrimary", Value: true}})
	for _, row := range []struct {
		reason string
		reply  []byte
		code   int32  // of the server's refusal
		err    string // part of any other error
	}{
		{"all well", replyTo(1, opMsg, well), 0, ""},
		{"ok as an integer", replyTo(1, opMsg, document(t, bson.D{{Key: "ok", Value: 1}})), 0, ""},
		{"a refusal", replyTo(1, opMsg, document(t, bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 74}, {Key: "codeName", Value: "NodeNotFound"}, {Key: "errmsg", Value: "no quorum"}})), 74, ""},
		{"a reply that says nothing of ok is no success", replyTo(1, opMsg, document(t, bson.D{{Key: "n", Value: 1}})), 0, "neither that all is well"},
		{"an answer to another question", replyTo(9, opMsg, well), 0, errReply.Error()},
		{"a reply of the old kind", replyTo(1, 1, well), 0, errReply.Error()},
		{"another protocol", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), 0, errReply.Error()},
		{"a length that is none", make([]byte, headerLength), 0, errReply.Error()},
		{"a document that is cut", replyTo(1, opMsg, well[:len(well)-3]), 0, errReply.Error()},
		{"a message that is cut", replyTo(1, opMsg, well)[:30], 0, "EOF"},
		{"nothing", nil, 0, "EOF"},
	} {
		ours, theirs := net.Pipe()
		go func() {
			var head [4]byte
			if _, err := io.ReadFull(theirs, head[:]); err == nil {
				_, _ = io.CopyN(io.Discard, theirs, int64(binary.LittleEndian.Uint32(head[:]))-4)
				_, _ = io.Copy(theirs, bytes.NewReader(row.reply))
			}
			_ = theirs.Close()
		}()
		l := &link{address: "nowhere", conn: ours}
		_, err := l.run(t.Context(), bson.D{{Key: "ping", Value: 1}})
		if code := codeOf(err); code != row.code {
			t.Errorf("%s: code %d: %v", row.reason, code, err)
		}
		if row.code == 0 && (err != nil) != (row.err != "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: got %v, want %q", row.reason, err, row.err)
		}
		if whole := !strings.Contains(row.err, "EOF") && row.err != errReply.Error(); whole != (l.conn != nil) {
			t.Errorf("%s: the connection is kept: %t", row.reason, l.conn != nil)
		}
		l.close()
		l.close()
	}
}

// A server that takes a connection and says nothing is given up with the
// context, which says why.
func TestLinkEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("the time is over"))
	defer cancel()
	to := &link{address: l.Addr().String()}
	if _, err := to.run(ctx, bson.D{{Key: "ping", Value: 1}}); err == nil || !strings.Contains(err.Error(), "the time is over") {
		t.Errorf("got %v", err)
	}
	if to.conn != nil {
		t.Error("a connection on which a reply is due was kept")
	}
}

// Whatever comes back, a link takes it or refuses it; what it takes is BSON.
func FuzzLinkReply(f *testing.F) {
	f.Add(replyTo(1, opMsg, document(f, bson.D{{Key: "ok", Value: 1.0}})))
	f.Add(replyTo(1, opMsg, []byte{5, 0, 0, 0, 0})[:20])
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add(make([]byte, headerLength))
	f.Fuzz(func(t *testing.T, reply []byte) {
		l := &link{conn: &recorded{Reader: bytes.NewReader(reply)}, id: 1}
		got, err := l.read()
		if err == nil && got.Validate() != nil {
			t.Errorf("it took %x for a document", got)
		}
	})
}

// recorded is a connection from which a text comes.
type recorded struct {
	net.Conn
	io.Reader
}

func (r *recorded) Read(p []byte) (int, error) { return r.Reader.Read(p) }
