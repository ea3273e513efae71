package data

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// token is the contents of a resume token. Its text has the server's format: a sequence of typed keys in hexadecimal,
// beginning with the time. It omits the document key, which is not needed to find the event.
type token struct {
	ts         bson.Timestamp
	index      int32 // within a transaction
	highWater  bool  // a position between events
	invalidate bool  // the invalidate event that follows an event
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

// appendNumber appends a non-negative number.
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

// parseToken returns the text of a resume token and its time.
func parseToken(v any) (text string, ts bson.Timestamp, err error) {
	d, ok := v.(bson.D)
	if !ok {
		return "", ts, command.Errorf(command.CodeTypeMismatch, "BSON field '$changeStream.resumeAfter' is the wrong type '%s', expected type 'object'", value.TypeName(v))
	}
	text, ok = value.Get(d, "_data").(string)
	if !ok {
		return "", ts, command.Errorf(40647, "Bad resume token: _data of missing or of wrong type: %s", value.Text(d))
	}
	b, err := hex.DecodeString(text)
	switch {
	case err != nil:
		return "", ts, command.Errorf(command.CodeFailedToParse, "resume token string was not a valid hex string")
	case len(b) < 12 || b[0] != keyTimestamp:
		return "", ts, command.Errorf(50811, "KeyString format error: invalid resume token %s", text)
	}
	return strings.ToUpper(text), bson.Timestamp{T: binary.BigEndian.Uint32(b[1:]), I: binary.BigEndian.Uint32(b[5:])}, nil
}
