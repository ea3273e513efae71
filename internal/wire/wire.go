// Package wire reads and writes messages of the MongoDB wire protocol, for servers, proxies and clients: OP_MSG with
// document sequences and checksums, OP_QUERY and OP_REPLY of commands, OP_COMPRESSED.
// Only ReadMessage does I/O. No input is trusted: lengths are checked before use, documents are validated before they
// are read, and no input causes a panic.
//
// There are two kinds of errors, as on the server: an *Error is sent to the client, any other error closes the
// connection.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// OpCode is the type of a message.
type OpCode = wiremessage.OpCode

// The supported opcodes.
const (
	OpReply      OpCode = 1
	OpQuery      OpCode = 2004
	OpCompressed OpCode = 2012
	OpMsg        OpCode = 2013
)

// Sizes in bytes.
const (
	headerSize  = 16
	MaxMessage  = 48000000 // maxMessageSizeBytes of hello
	MaxDocument = 16777216 // maxBsonObjectSize of hello
	// MaxInternal is the server's internal limit for documents: MaxDocument and some room for a command around it.
	MaxInternal = MaxDocument + 16*1024
)

// Header is the header of a message.
type Header struct {
	Length     int32 // of the message, including the header
	RequestID  int32
	ResponseTo int32
	OpCode     OpCode
}

// ErrHTTP reports an HTTP request. The server replies with HTTPReply and closes the connection.
var ErrHTTP = errors.New("HTTP request on the native driver port")

// ErrLength reports an impossible length in a header.
var ErrLength = errors.New("invalid message length")

// HTTPReply is the response to an HTTP request.
const HTTPReply = "HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 85\r\n\r\n" +
	"It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"

// ReadMessage reads the header and the body of a message. The caller owns the body. ReadMessage returns io.EOF if the
// stream ends before the first byte, ErrHTTP for an HTTP request, and ErrLength for an invalid length.
func ReadMessage(r io.Reader) (Header, []byte, error) {
	message, err := ReadWhole(r)
	switch {
	case len(message) < headerSize:
		return Header{}, nil, err
	case string(message[:4]) == "GET ":
		return Header{}, nil, ErrHTTP
	case errors.Is(err, ErrLength):
		return parseHeader(message), nil, err
	}
	return parseHeader(message), message[headerSize:], err
}

// usualMessage is the length up to which the length in a header alone determines how much memory is allocated.
const usualMessage = 1 << 16

// ReadWhole reads a message with its header. With an error, it also returns the bytes that it has read. It returns the
// same errors as ReadMessage, except that an HTTP request has an invalid length. Memory for long messages is allocated
// as bytes arrive.
func ReadWhole(r io.Reader) ([]byte, error) {
	head := make([]byte, headerSize)
	if n, err := io.ReadFull(r, head); err != nil {
		return head[:n], err
	}
	length := parseHeader(head).Length
	if length < headerSize || length > MaxMessage {
		return head, fmt.Errorf("%w of %d bytes", ErrLength, length)
	}
	message, err := head, error(nil)
	if length <= usualMessage {
		var n int
		message = append(make([]byte, 0, length), head...)[:length]
		n, err = io.ReadFull(r, message[headerSize:])
		message = message[:headerSize+n]
	} else {
		long := bytes.NewBuffer(head)
		_, err = io.CopyN(long, r, int64(length)-headerSize)
		message = long.Bytes()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return message, err
}

// Split returns the header and the body of a whole message.
func Split(message []byte) (Header, []byte, error) {
	if len(message) < headerSize {
		return Header{}, nil, errors.New("truncated header")
	}
	h := parseHeader(message)
	if int(h.Length) != len(message) {
		return h, nil, fmt.Errorf("the length in the header is %d, the message has %d bytes", h.Length, len(message))
	}
	return h, message[headerSize:], nil
}

func parseHeader(raw []byte) Header {
	length, id, to, op, _, _ := wiremessage.ReadHeader(raw)
	return Header{Length: length, RequestID: id, ResponseTo: to, OpCode: op}
}

// AppendMessage appends a message with the given header, except for its length, and body.
func AppendMessage(dst []byte, h Header, body []byte) []byte {
	start, dst := wiremessage.AppendHeaderStart(dst, h.RequestID, h.ResponseTo, h.OpCode)
	return finish(append(dst, body...), start)
}

// finish sets the length of the message from start on.
func finish(dst []byte, start int32) []byte {
	return bsoncore.UpdateLength(dst, start, int32(len(dst))-start)
}

// reader reads a body. bad is set after a read beyond the end; all results are invalid then.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) int32() int32 {
	if len(r.rest) < 4 {
		r.rest, r.bad = nil, true
		return 0
	}
	v := int32(binary.LittleEndian.Uint32(r.rest))
	r.rest = r.rest[4:]
	return v
}

func (r *reader) byte() byte {
	if len(r.rest) < 1 {
		r.bad = true
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reader) cstring() string {
	s, rest, ends := bytes.Cut(r.rest, []byte{0})
	r.rest, r.bad = rest, r.bad || !ends
	return string(s)
}
