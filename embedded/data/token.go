package data

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// token is a place in the log, as resume tokens encode it. Its text is the
// server's: a sequence of typed keys in hexadecimal, of which the first is the
// time. It has no identifier of the document at its end, which is not needed to find the
// place.
type token struct {
	ts         bson.Timestamp
	index      int32 // within a transaction
	highWater  bool  // a place between events
	invalidate bool  // the invalidation that follows an event
	uuid       []byte
}

// Bytes of the key format.
const (
	keyTimestamp = 0x82
	keyNumber0   = 0x29 // zero; 0x2B is a positive number of one byte, 0x2C of two, …
	keyFalse     = 0x6E
	keyTrue      = 0x6F
	keyBinary    = 0x5A
	keyEnd       = 0x04
)

func (t token) String() string {
	b := []byte{keyTimestamp}
	b = binary.BigEndian.AppendUint32(b, t.ts.T)
	b = binary.BigEndian.AppendUint32(b, t.ts.I)
	b = append(b, 0x2B, 0x02) // version 1
	if t.highWater {
		b = append(b, keyNumber0)
	} else {
		b = append(b, 0x2C, 0x01, 0x00) // an event: 128
	}
	b = appendNumber(b, int64(t.index))
	if t.invalidate {
		b = append(b, keyTrue)
	} else {
		b = append(b, keyFalse)
	}
	if t.uuid != nil {
		b = append(b, keyBinary, byte(len(t.uuid)), 4)
		b = append(b, t.uuid...)
	}
	return strings.ToUpper(hex.EncodeToString(append(b, keyEnd)))
}

// appendNumber appends a number that is not negative.
func appendNumber(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, keyNumber0)
	}
	digits := binary.BigEndian.AppendUint64(nil, uint64(n)<<1)
	for digits[0] == 0 {
		digits = digits[1:]
	}
	return append(append(b, byte(0x2A+len(digits))), digits...)
}

// parseToken reads a resume token.
func parseToken(v any) (token, error) {
	d, ok := v.(bson.D)
	if !ok {
		return token{}, command.Errorf(command.CodeTypeMismatch, "BSON field '$changeStream.resumeAfter' is the wrong type '%s', expected type 'object'", value.TypeName(v))
	}
	data, ok := value.Field(d, "_data")
	if !ok {
		return token{}, command.Errorf(40647, "Bad resume token: _data of missing or of wrong type: %s", value.Text(d))
	}
	s, ok := data.(string)
	if !ok {
		return token{}, command.Errorf(40647, "Bad resume token: _data of missing or of wrong type: %s", value.Text(d))
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return token{}, command.Errorf(command.CodeFailedToParse, "resume token string was not a valid hex string")
	}
	bad := command.Errorf(50811, "KeyString format error: invalid resume token %s", s)
	if len(b) < 12 || b[0] != keyTimestamp {
		return token{}, bad
	}
	t := token{ts: bson.Timestamp{T: binary.BigEndian.Uint32(b[1:]), I: binary.BigEndian.Uint32(b[5:])}}
	b = b[9:]
	var numbers [3]int64 // version, type, index
	for i := range numbers {
		if len(b) == 0 {
			return token{}, bad
		}
		n := int(b[0]) - 0x2A
		if b[0] == keyNumber0 {
			n = 0
		}
		if n < 0 || n > 8 || len(b) < 1+n {
			return token{}, bad
		}
		v := uint64(0)
		for _, x := range b[1 : 1+n] {
			v = v<<8 | uint64(x)
		}
		numbers[i] = int64(v >> 1)
		b = b[1+n:]
	}
	t.highWater, t.index = numbers[1] == 0, int32(numbers[2])
	if len(b) > 0 {
		t.invalidate = b[0] == keyTrue
	}
	return t, nil
}
