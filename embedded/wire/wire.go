// Package wire reads and writes the messages of the MongoDB wire protocol as
// a server sees them: OP_MSG with document sequences and checksums, OP_QUERY
// and OP_REPLY of commands, OP_COMPRESSED.
//
// Nothing here does I/O but ReadMessage. Everything that comes in is taken to
// be hostile: lengths are checked before they are used, documents are
// validated before anything looks into them, and no input makes it panic.
//
// Failures come in two kinds, as on the server: a *command.Error is answered
// with an error document, any other error ends the connection.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// OpCode says what a message is.
type OpCode int32

// The opcodes that are served.
const (
	OpReply      OpCode = 1
	OpQuery      OpCode = 2004
	OpCompressed OpCode = 2012
	OpMsg        OpCode = 2013
)

// Sizes in bytes.
const (
	HeaderSize  = 16
	MaxMessage  = 48000000 // maxMessageSizeBytes of hello
	MaxDocument = 16777216 // maxBsonObjectSize of hello
	// MaxInternal is the length that a document may have inside the server:
	// a little more than MaxDocument, for the command around it.
	MaxInternal = MaxDocument + 16*1024
)

// Header stands before every message.
type Header struct {
	Length     int32 // of the whole message, header included
	RequestID  int32
	ResponseTo int32
	OpCode     OpCode
}

// ErrHTTP reports that the client speaks HTTP. The server answers with
// HTTPAnswer and closes.
var ErrHTTP = errors.New("an HTTP request on the native driver port")

// HTTPAnswer is what a browser gets.
const HTTPAnswer = "HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 85\r\n\r\n" +
	"It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"

// ReadMessage reads one message: its header, and the bytes after the header,
// which the caller owns. It returns io.EOF if the stream ends before the first
// byte, ErrHTTP for an HTTP request, and some other error for a length that no
// message may have. The body is read in pieces, so that a lying length costs no
// more memory than the bytes that really came.
func ReadMessage(r io.Reader) (Header, []byte, error) {
	var raw [HeaderSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return Header{}, nil, err
	}
	if string(raw[:4]) == "GET " {
		return Header{}, nil, ErrHTTP
	}
	h := ParseHeader(raw)
	if h.Length < HeaderSize || h.Length > MaxMessage {
		return h, nil, fmt.Errorf("a message of %d bytes", h.Length)
	}
	body, err := readBody(r, int(h.Length)-HeaderSize)
	return h, body, err
}

// ParseHeader takes a header apart. It accepts anything.
func ParseHeader(raw [HeaderSize]byte) Header {
	return Header{
		Length:     int32(binary.LittleEndian.Uint32(raw[0:])),
		RequestID:  int32(binary.LittleEndian.Uint32(raw[4:])),
		ResponseTo: int32(binary.LittleEndian.Uint32(raw[8:])),
		OpCode:     OpCode(binary.LittleEndian.Uint32(raw[12:])),
	}
}

// piece is how much room is made for a body before its bytes come.
const piece = 1 << 16

func readBody(r io.Reader, n int) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(min(n, piece) + bytes.MinRead)
	_, err := io.CopyN(&body, r, int64(n))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return body.Bytes(), err
}

// AppendMessage appends a message with a body of any opcode, as ReadMessage returns it.
func AppendMessage(dst []byte, h Header, body []byte) []byte {
	return finish(append(appendHeader(dst, h.RequestID, h.ResponseTo, h.OpCode), body...))
}

// appendHeader begins a message; finish sets its length.
func appendHeader(dst []byte, requestID, responseTo int32, op OpCode) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(requestID))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo))
	return binary.LittleEndian.AppendUint32(dst, uint32(op))
}

func finish(message []byte) []byte {
	binary.LittleEndian.PutUint32(message, uint32(len(message)))
	return message
}

// reader walks through a body. After an overrun, bad is true, and nothing
// that was read counts.
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

// cstring reads up to the next zero byte.
func (r *reader) cstring() string {
	s, rest, ends := bytes.Cut(r.rest, []byte{0})
	r.rest, r.bad = rest, r.bad || !ends
	return string(s)
}
