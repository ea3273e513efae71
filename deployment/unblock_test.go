package deployment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Whoever accepts a connection and does not speak the protocol is not a server.
func TestBareReplies(t *testing.T) {
	for _, r := range []struct {
		reason string
		reply  []byte
		ok     bool
	}{
		{"a reply", bareReply(t, 2013, 0, bson.D{{Key: "ok", Value: 1.0}}), true},
		{"a refusal", bareReply(t, 2013, 0, bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 13}}), false},
		{"nothing", nil, false},
		{"half a header", make([]byte, 7), false},
		{"another protocol", []byte("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), false},
		{"another opcode", bareReply(t, 1, 0, bson.D{{Key: "ok", Value: 1.0}}), false},
		{"smaller than its header", bareReply(t, 2013, 3, bson.D{{Key: "ok", Value: 1.0}}), false},
		{"larger than any reply", bareReply(t, 2013, 1<<31, bson.D{}), false},
		{"cut off", bareReply(t, 2013, 1000, bson.D{{Key: "ok", Value: 1.0}}), false},
		{"not a document", append(bareReply(t, 2013, bareHeader+4, bson.D{})[:bareHeader], 1, 2, 3, 4), false},
	} {
		if _, err := readBare(bytes.NewReader(r.reply)); (err == nil) != r.ok {
			t.Errorf("%s: %v", r.reason, err)
		}
	}
	silent, called := listening(t)
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	go func() { <-called; cancel(errors.New("enough")) }()
	_, err := bare(ctx, silent, "admin", bson.D{{Key: "ping", Value: 1}})
	testkit.Fails(t, err)
}

// bareReply makes a message with a document, and with another size unless that is 0.
func bareReply(t testing.TB, op, size uint32, doc bson.D) []byte {
	t.Helper()
	body, err := bson.Marshal(doc)
	testkit.Check(t, err)
	message := append(make([]byte, bareHeader), body...)
	if size == 0 {
		size = uint32(len(message))
	}
	binary.LittleEndian.PutUint32(message, size)
	binary.LittleEndian.PutUint32(message[12:], op)
	return message
}

func FuzzReadBare(f *testing.F) {
	f.Add(bareReply(f, 2013, 0, bson.D{{Key: "ok", Value: 1.0}}))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) >= 4 && binary.LittleEndian.Uint32(reply) > 1<<16 {
			return // to be read is to be made room for
		}
		if doc, err := readBare(bytes.NewReader(reply)); err == nil && doc.Validate() != nil {
			t.Errorf("%x is taken for a reply", reply)
		}
	})
}
