package commands

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// tokenOf returns the resume token of an entry or of the invalidate event that follows it.
func tokenOf(e *store.Entry, invalidate bool) token {
	return token{ts: e.TS, index: e.TxnIndex, invalidate: invalidate, uuid: e.UUID.Data}
}

// token is the contents of a resume token. Its text has the server's format: a sequence of typed keys in hexadecimal,
// beginning with the time. It omits the document key: the event is found without it.
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
	b := binary.BigEndian.AppendUint32([]byte{keyTimestamp}, t.ts.T)
	b = binary.BigEndian.AppendUint32(b, t.ts.I)
	kind, last := int64(128), byte(keyFalse) // 128: an event
	if t.highWater {
		kind = 0
	}
	if t.invalidate {
		last = keyTrue
	}
	for _, n := range []int64{1, kind, int64(t.index)} { // 1: the version of the format
		b = appendNumber(b, n)
	}
	b = append(b, last)
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

// token returns the text of the resume token in an option of $changeStream, and its time.
func (a *args) token(option string) (text string, ts bson.Timestamp) {
	d := a.document(option)
	text, ok := value.Get(d, "_data").(string)
	a.Refuse(!ok, 40647, "Bad resume token: _data of missing or of wrong type: %s", value.Text(d))
	b, err := hex.DecodeString(text)
	a.Refuse(err != nil, fault.FailedToParse, "resume token string was not a valid hex string")
	if len(b) < 12 || b[0] != keyTimestamp {
		a.Fail(50811, "KeyString format error: invalid resume token %s", text)
		return "", ts
	}
	return strings.ToUpper(text), bson.Timestamp{T: binary.BigEndian.Uint32(b[1:]), I: binary.BigEndian.Uint32(b[5:])}
}
