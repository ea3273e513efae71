package data

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// opKind is a kind of logged write.
type opKind uint8

const (
	opNoop opKind = iota
	opInsert
	opUpdate
	opReplace
	opDelete
	opCreate
	opDrop
	opRename
	opDropDatabase
	opCreateIndexes
	opDropIndexes
	opModify
	opShard
)

// entry is one logged write.
type entry struct {
	ts        bson.Timestamp
	txnIndex  int32 // place within a transaction
	kind      opKind
	db, coll  string
	uuid      bson.Binary
	old, new  *record      // of a document that was written; nil where it did not exist, or does not any more
	to        string       // rename: the new namespace
	nsType    string       // create: collection, view or timeseries
	detail    bson.D       // operationDescription of expanded events
	preimages bool         // the collection keeps pre-images
	dropped   *bson.Binary // rename: the UUID of the target that was dropped
	lsid      bson.Raw
	txnNumber int64
	wall      bson.DateTime
}

// maxOplog and maxOplogBytes bound the log, which may have twice as much before it forgets
// what is older; that cannot be resumed from.
const (
	maxOplog      = 20000
	maxOplogBytes = 128 << 20
)

// bytes is about what an entry takes.
func (e *entry) bytes() int {
	n := 256
	for _, r := range []*record{e.old, e.new} {
		if r != nil {
			n += len(r.raw)
		}
	}
	return n
}

// oplog is the log of writes, from which change streams and snapshots read.
type oplog struct {
	entries []entry
	first   int64 // sequence number of entries[0]
	from    bson.Timestamp
	bytes   int
}

func (o *oplog) next() int64 { return o.first + int64(len(o.entries)) }

// truncate forgets what was logged from a number on.
func (o *oplog) truncate(seq int64) {
	keep := max(seq-o.first, 0)
	o.count(o.entries[keep:], -1)
	o.entries = o.entries[:keep]
}

func (o *oplog) count(entries []entry, sign int) {
	for i := range entries {
		o.bytes += sign * entries[i].bytes()
	}
}

func (o *oplog) at(seq int64) (*entry, bool) {
	if seq < o.first || seq >= o.next() {
		return nil, false
	}
	return &o.entries[seq-o.first], true
}

// log appends a write. The caller holds mu and has ticked.
func (d *Data) log(e entry) {
	if !d.logged() {
		return
	}
	e.wall = bson.NewDateTimeFromTime(time.Now())
	d.oplog.append(e)
}

func (o *oplog) append(e entry) {
	o.entries = append(o.entries, e)
	o.bytes += e.bytes()
	if len(o.entries) <= 2*maxOplog && o.bytes <= 2*maxOplogBytes {
		return
	}
	old := 0
	for ; len(o.entries)-old > maxOplog || o.bytes > maxOplogBytes; old++ {
		o.bytes -= o.entries[old].bytes()
	}
	o.from = o.entries[old-1].ts
	o.first += int64(old)
	o.entries = append([]entry(nil), o.entries[old:]...)
}

// changed logs a change that the command has made. The caller holds mu.
func (s *scope) changed(e entry) {
	e.ts = s.d.tick()
	s.d.log(e)
	s.writes = true
}

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

// token is the place of an entry, or of the invalidation that follows it.
func (e *entry) token(invalidate bool) token {
	return token{ts: e.ts, index: e.txnIndex, invalidate: invalidate, uuid: e.uuid.Data}
}

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

// parseToken reads the text of a resume token, and the time in it.
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
