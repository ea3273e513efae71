package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// Flags are the flag bits of an OP_MSG. The lower sixteen are required: receivers must reject messages with unknown
// ones.
type Flags = wiremessage.MsgFlag

// The flag bits.
const (
	ChecksumPresent = wiremessage.ChecksumPresent
	MoreToCome      = wiremessage.MoreToCome
	ExhaustAllowed  = wiremessage.ExhaustAllowed

	required      Flags = 1<<16 - 1
	knownRequired Flags = ChecksumPresent | MoreToCome
)

// Msg is an OP_MSG.
type Msg struct {
	Flags     Flags
	Body      bson.Raw
	Sequences []Sequence
}

// Sequence is a document sequence (section kind 1): the elements of the array Name of the body.
type Sequence struct {
	Name      string
	Documents []bson.Raw
}

// Error codes of invalid messages.
const (
	codeTwoBodies        = 40430
	codeTwoSequences     = 40431
	codeUnknownSection   = 40432
	codeFieldAndSequence = 40433
	codeNoBody           = 40587
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumSize = 4

const maxSequences = 2 // in a message; no command has more

// ParseMsg parses an OP_MSG. The result shares body's memory. If the error is a *Error, the returned Msg has its flags,
// because the reply depends on them. BSON is validated as on the server: lengths, types, terminators and nesting, but
// not UTF-8.
//
// The checksum is verified last, as on the server: other errors take precedence.
func ParseMsg(h Header, body []byte) (Msg, error) {
	r := reader{rest: body}
	m := Msg{Flags: Flags(r.int32())}
	if r.bad {
		return m, errors.New("OP_MSG without flags")
	}
	if unknown := m.Flags & required &^ knownRequired; unknown != 0 {
		return m, fmt.Errorf("OP_MSG with unknown required flag bits %#x", uint32(unknown))
	}
	if m.Flags&ChecksumPresent != 0 {
		if len(r.rest) < checksumSize {
			return m, errors.New("OP_MSG too short for its checksum")
		}
		r.rest = r.rest[:len(r.rest)-checksumSize]
	}
	for len(r.rest) > 0 {
		if err := m.section(&r); err != nil {
			return m, err
		}
	}
	if m.Flags&ChecksumPresent != 0 && !validChecksum(h, body) {
		return m, errors.New("OP_MSG with an invalid checksum")
	}
	if m.Body == nil {
		return m, refuse(codeNoBody, "OP_MSG messages must have a body")
	}
	for _, s := range m.Sequences {
		if _, err := m.Body.LookupErr(s.Name); err == nil {
			return m, refuse(codeFieldAndSequence, "Duplicate field between body and document sequence %s", s.Name)
		}
	}
	return m, nil
}

func (m *Msg) section(r *reader) error {
	switch kind := r.byte(); kind {
	case 0:
		if m.Body != nil {
			return refuse(codeTwoBodies, "Multiple body sections in message")
		}
		doc, err := document(r)
		m.Body = doc
		return err
	case 1:
		return m.sequence(r)
	default:
		return refuse(codeUnknownSection, "Unknown section kind %d", kind)
	}
}

func (m *Msg) sequence(r *reader) error {
	size := r.int32()
	if r.bad {
		return refuse(codes.Overflow, "sequence without a length")
	}
	// A length below 4 wraps around, as on the server: the message then contains a length that was not sent.
	length := uint32(size) - 4
	if uint64(length) > uint64(len(r.rest)) {
		return refuse(codes.Overflow, "Invalid advance (%d) past end of buffer[%d] at offset: 0", length, len(r.rest))
	}
	section := reader{rest: r.rest[:length]}
	r.rest = r.rest[length:]
	s := Sequence{Name: section.cstring()}
	if section.bad {
		return refuse(codes.Overflow, "document sequence without a name")
	}
	if slices.ContainsFunc(m.Sequences, func(other Sequence) bool { return other.Name == s.Name }) {
		return refuse(codeTwoSequences, "Duplicate document sequence: %s", s.Name)
	}
	for len(section.rest) > 0 {
		doc, err := document(&section)
		if err != nil {
			return err
		}
		s.Documents = append(s.Documents, doc)
	}
	if len(m.Sequences) == maxSequences {
		return errors.New("OP_MSG with too many document sequences")
	}
	m.Sequences = append(m.Sequences, s)
	return nil
}

func document(r *reader) (bson.Raw, error) {
	n, err := validate(r.rest)
	if err != nil {
		return nil, err
	}
	doc := bson.Raw(r.rest[:n:n])
	r.rest = r.rest[n:]
	return doc, nil
}

func validChecksum(h Header, body []byte) bool {
	end := len(body) - checksumSize
	raw := wiremessage.AppendHeader(nil, h.Length, h.RequestID, h.ResponseTo, h.OpCode)
	sum := crc32.Update(crc32.Checksum(raw, castagnoli), castagnoli, body[:end])
	return sum == binary.LittleEndian.Uint32(body[end:])
}

// Document returns the body with the document sequences as arrays.
func (m Msg) Document() bson.Raw {
	if len(m.Sequences) == 0 {
		return m.Body
	}
	out := bytes.Clone(m.Body[:len(m.Body)-1])
	for _, s := range m.Sequences {
		var start int32
		start, out = bsoncore.AppendArrayElementStart(out, s.Name)
		for i, d := range s.Documents {
			out = bsoncore.AppendDocumentElement(out, strconv.Itoa(i), bsoncore.Document(d))
		}
		out, _ = bsoncore.AppendArrayEnd(out, start) // start is valid
	}
	return finish(append(out, 0), 0)
}

// Response parses the reply to a request. It has one document and may be compressed.
func Response(request int32, h Header, body []byte) (bson.Raw, error) {
	if h.ResponseTo != request {
		return nil, &replies.Error{ResponseTo: h.ResponseTo, Last: request}
	}
	if h.OpCode == OpCompressed {
		var err error
		if h, body, _, err = Decompress(h, body); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	if h.OpCode != OpMsg {
		return nil, fmt.Errorf("%w: opcode %d", ErrMalformed, h.OpCode)
	}
	m, err := ParseMsg(h, body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	case len(m.Sequences) > 0:
		return nil, fmt.Errorf("%w: it has a document sequence", ErrMalformed)
	}
	return m.Body, nil
}

// ErrMalformed means that a reply is not an OP_MSG with one document.
var ErrMalformed = errors.New("malformed reply")

// Sequenced returns the message of a command whose arrays of documents with the given names are document sequences. It
// is the inverse of Document.
func Sequenced(doc bson.Raw, names ...string) (Msg, error) {
	elements, err := doc.Elements()
	if err != nil || len(names) == 0 {
		return Msg{Body: doc}, err
	}
	var m Msg
	start, body := bsoncore.AppendDocumentStart(nil)
	for _, e := range elements {
		if !slices.Contains(names, e.Key()) {
			body = append(body, e...)
			continue
		}
		array, _ := e.Value().ArrayOK()
		values, err := array.Values()
		if err != nil {
			return m, fmt.Errorf("%s is not a list of documents: %w", e.Key(), err)
		}
		s := Sequence{Name: e.Key()}
		for _, v := range values {
			d, _ := v.DocumentOK()
			s.Documents = append(s.Documents, d)
		}
		m.Sequences = append(m.Sequences, s)
	}
	m.Body, err = bsoncore.AppendDocumentEnd(body, start)
	return m, err
}

// AppendMsg appends a complete OP_MSG with one body section, and a checksum if the flags require one.
func AppendMsg(dst []byte, requestID, responseTo int32, flags Flags, doc bson.Raw) []byte {
	return Msg{Flags: flags, Body: doc}.Append(dst, requestID, responseTo)
}

// Append appends a complete OP_MSG, with a checksum if the flags require one.
func (m Msg) Append(dst []byte, requestID, responseTo int32) []byte {
	flags := m.Flags
	start, dst := wiremessage.AppendHeaderStart(slices.Grow(dst, headerSize+len(m.Body)+9), requestID, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(flags))
	dst = append(dst, 0)
	dst = append(dst, m.Body...)
	for _, s := range m.Sequences {
		dst = append(dst, 1)
		begin := len(dst)
		dst = append(append(append(dst, 0, 0, 0, 0), s.Name...), 0)
		for _, d := range s.Documents {
			dst = append(dst, d...)
		}
		binary.LittleEndian.PutUint32(dst[begin:], uint32(len(dst)-begin))
	}
	if flags&ChecksumPresent == 0 {
		return finish(dst, start)
	}
	end := len(dst)
	dst = finish(append(dst, make([]byte, checksumSize)...), start)
	binary.LittleEndian.PutUint32(dst[end:], crc32.Checksum(dst[start:end], castagnoli))
	return dst
}
