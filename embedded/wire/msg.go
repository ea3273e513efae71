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

	"github.com/unified-test-runner/utr/embedded/command"
)

// Flags are the flag bits of an OP_MSG. The lower sixteen are required: a
// receiver that does not know one must refuse the message.
type Flags uint32

// The flag bits.
const (
	ChecksumPresent Flags = 1 << 0
	MoreToCome      Flags = 1 << 1
	ExhaustAllowed  Flags = 1 << 16

	required      Flags = 1<<16 - 1
	knownRequired Flags = ChecksumPresent | MoreToCome
)

// Msg is an OP_MSG.
type Msg struct {
	Flags     Flags
	Body      bson.Raw
	Sequences []Sequence
}

// Sequence is a section of kind 1: documents that belong into the body as the
// array Name.
type Sequence struct {
	Name      string
	Documents []bson.Raw
}

// The codes of refused messages.
const (
	codeTwoBodies        = 40430
	codeTwoSequences     = 40431
	codeUnknownSection   = 40432
	codeFieldAndSequence = 40433
	codeNoBody           = 40587
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumSize = 4

// maxSequences is how many document sequences a message may have: no command
// has more.
const maxSequences = 2

// These end the connection.
var (
	errNoFlags       = errors.New("an OP_MSG without flags")
	errChecksum      = errors.New("an OP_MSG with a wrong checksum")
	errSequences     = errors.New("an OP_MSG with too many document sequences")
	errChecksumShort = errors.New("an OP_MSG too short for its checksum")
)

// ParseMsg takes an OP_MSG apart. The result shares body's memory. With a
// *command.Error the returned Msg has its flags, for the answer. BSON is
// validated: lengths, types, terminators, nesting; not UTF-8, as on the server.
//
// A checksum is verified last, as on the server: a message that is wrong in
// itself is answered although its checksum is wrong too.
func ParseMsg(h Header, body []byte) (Msg, error) {
	r := reader{rest: body}
	m := Msg{Flags: Flags(r.int32())}
	if r.bad {
		return m, errNoFlags
	}
	if unknown := m.Flags & required &^ knownRequired; unknown != 0 {
		return m, fmt.Errorf("an OP_MSG with unknown required flag bits %#x", uint32(unknown))
	}
	if m.Flags&ChecksumPresent != 0 {
		if len(r.rest) < checksumSize {
			return m, errChecksumShort
		}
		r.rest = r.rest[:len(r.rest)-checksumSize]
	}
	for len(r.rest) > 0 {
		if err := m.section(&r); err != nil {
			return m, err
		}
	}
	if m.Flags&ChecksumPresent != 0 && !checksumRight(h, body) {
		return m, errChecksum
	}
	if m.Body == nil {
		return m, command.Errorf(codeNoBody, "OP_MSG messages must have a body")
	}
	for _, s := range m.Sequences {
		if _, err := m.Body.LookupErr(s.Name); err == nil {
			return m, command.Errorf(codeFieldAndSequence, "Duplicate field between body and document sequence %s", s.Name)
		}
	}
	return m, nil
}

func (m *Msg) section(r *reader) error {
	switch kind := r.byte(); kind {
	case 0:
		if m.Body != nil {
			return command.Errorf(codeTwoBodies, "Multiple body sections in message")
		}
		doc, err := document(r)
		m.Body = doc
		return err
	case 1:
		return m.sequence(r)
	default:
		return command.Errorf(codeUnknownSection, "Unknown section kind %d", kind)
	}
}

func (m *Msg) sequence(r *reader) error {
	size := r.int32()
	if r.bad {
		return command.Errorf(command.CodeOverflow, "sequence without a length")
	}
	// A length below its own four bytes wraps around, so that the message
	// reports a length that nobody sent.
	length := uint32(size) - 4
	if uint64(length) > uint64(len(r.rest)) {
		return command.Errorf(command.CodeOverflow, "Invalid advance (%d) past end of buffer[%d] at offset: 0", length, len(r.rest))
	}
	section := reader{rest: r.rest[:length]}
	r.rest = r.rest[length:]
	s := Sequence{Name: section.cstring()}
	if section.bad {
		return command.Errorf(command.CodeOverflow, "document sequence without a name")
	}
	if slices.ContainsFunc(m.Sequences, func(other Sequence) bool { return other.Name == s.Name }) {
		return command.Errorf(codeTwoSequences, "Duplicate document sequence: %s", s.Name)
	}
	for len(section.rest) > 0 {
		doc, err := document(&section)
		if err != nil {
			return err
		}
		s.Documents = append(s.Documents, doc)
	}
	if len(m.Sequences) == maxSequences {
		return errSequences
	}
	m.Sequences = append(m.Sequences, s)
	return nil
}

// document validates the document at the front of r and steps over it.
func document(r *reader) (bson.Raw, error) {
	n, err := validate(r.rest)
	if err != nil {
		return nil, err
	}
	doc := bson.Raw(r.rest[:n:n])
	r.rest = r.rest[n:]
	return doc, nil
}

// checksumRight compares the CRC-32C at the end of a message with that of its
// header and body.
func checksumRight(h Header, body []byte) bool {
	end := len(body) - checksumSize
	raw := appendHeader(nil, h.RequestID, h.ResponseTo, h.OpCode)
	binary.LittleEndian.PutUint32(raw, uint32(h.Length))
	sum := crc32.Update(crc32.Checksum(raw, castagnoli), castagnoli, body[:end])
	return sum == binary.LittleEndian.Uint32(body[end:])
}

// Single gives the body with the document sequences folded in as arrays, the
// form that commands are written for.
func (m Msg) Single() bson.Raw {
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
		out, _ = bsoncore.AppendArrayEnd(out, start) // which ends what begins there
	}
	return finish(append(out, 0))
}

// AppendMsg appends a whole OP_MSG with one body section, and its checksum if
// the flags say so.
func AppendMsg(dst []byte, requestID, responseTo int32, flags Flags, doc bson.Raw) []byte {
	start := len(dst)
	dst = appendHeader(dst, requestID, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(flags))
	dst = append(dst, 0)
	dst = append(dst, doc...)
	message := finish(dst[start:])
	if flags&ChecksumPresent == 0 {
		return dst
	}
	binary.LittleEndian.PutUint32(message, uint32(len(message)+checksumSize))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(message, castagnoli))
}
