package wire_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// A reply is one document in an OP_MSG to the last request.
func TestResponse(t *testing.T) {
	doc := testkit.Raw(t, bson.D{{Key: "ok", Value: 1}})
	const request = 7
	reply := func(to int32, flags wire.Flags) []byte { return wire.AppendMsg(nil, 1, to, flags, doc) }
	packed, err := wire.Compress(reply(request, 0), wire.Zlib)
	testkit.Check(t, err)
	checked := reply(request, wire.ChecksumPresent)
	damaged := append([]byte(nil), checked...)
	damaged[len(damaged)-1]++
	sequence := append(append([]byte{0, 0, 0, 0, 0}, doc...), 1, 6, 0, 0, 0, 'a', 0)
	for _, r := range []struct {
		reason  string
		message []byte
		is      error // nil for a reply
	}{
		{"one document", reply(request, 0), nil},
		{"compressed", packed, nil},
		{"a checksum", checked, nil},
		{"another checksum", damaged, wire.ErrMalformed},
		{"a truncated OP_COMPRESSED", wire.AppendMessage(nil, wire.Header{ResponseTo: request, OpCode: wire.OpCompressed},
			[]byte{1}), wire.ErrMalformed},
		{"an OP_REPLY", wire.AppendReply(nil, 1, request, doc), wire.ErrMalformed},
		{"a document sequence", wire.AppendMessage(nil, wire.Header{ResponseTo: request, OpCode: wire.OpMsg}, sequence),
			wire.ErrMalformed},
		{"no document", wire.AppendMessage(nil, wire.Header{ResponseTo: request, OpCode: wire.OpMsg}, make([]byte, 4)),
			wire.ErrMalformed},
	} {
		t.Run(r.reason, func(t *testing.T) {
			h, body, err := wire.Split(r.message)
			testkit.Check(t, err)
			got, err := wire.Response(request, h, body)
			testkit.Equal(t, "the error", errors.Is(err, r.is), true)
			if r.is == nil {
				testkit.Equal(t, "the document", got.String(), doc.String())
			}
		})
	}
	h, body, err := wire.Split(reply(6, 0))
	testkit.Check(t, err)
	_, err = wire.Response(request, h, body)
	testkit.Equal(t, "a reply to another request is an error", errors.As(err, new(*replies.Error)), true)
}
