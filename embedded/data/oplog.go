package data

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// opKind is a kind of oplog entry: the operationType of its change event.
type opKind string

const (
	opInsert        opKind = "insert"
	opUpdate        opKind = "update"
	opReplace       opKind = "replace"
	opDelete        opKind = "delete"
	opCreate        opKind = "create"
	opDrop          opKind = "drop"
	opRename        opKind = "rename"
	opDropDatabase  opKind = "dropDatabase"
	opCreateIndexes opKind = "createIndexes"
	opDropIndexes   opKind = "dropIndexes"
	opModify        opKind = "modify"
	opShard         opKind = "shardCollection"
)

type entry struct {
	ts        bson.Timestamp
	txnIndex  int32 // position within a transaction
	kind      opKind
	db, coll  string
	uuid      bson.Binary
	old, new  *record      // before and after a write; nil if the document did not exist
	to        string       // rename: the new namespace
	nsType    string       // create: collection, view or timeseries
	detail    bson.D       // operationDescription of the expanded event
	preimages bool         // the collection keeps pre-images
	dropped   *bson.Binary // rename: the UUID of the dropped target
	lsid      bson.Raw
	txnNumber int64
	wall      bson.DateTime
}

// maxOplog and maxOplogBytes limit the oplog. It is truncated to these limits when it exceeds twice their value.
const (
	maxOplog      = 20000
	maxOplogBytes = 128 << 20
)

// bytes estimates the size of an entry.
func (e *entry) bytes() int {
	n := 256
	for _, r := range []*record{e.old, e.new} {
		if r != nil {
			n += len(r.raw)
		}
	}
	return n
}

// oplog is the log of writes, which change streams and snapshot reads use.
type oplog struct {
	entries []entry
	first   int64          // sequence number of entries[0]
	from    bson.Timestamp // time of the last removed entry
	bytes   int
}

// next returns the sequence number of the next entry.
func (o *oplog) next() int64 { return o.first + int64(len(o.entries)) }

// truncate removes the entries from a sequence number on.
func (o *oplog) truncate(seq int64) {
	keep := max(seq-o.first, 0)
	for _, e := range o.entries[keep:] {
		o.bytes -= e.bytes()
	}
	o.entries = o.entries[:keep]
}

// at returns the entry with a sequence number.
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
	o.entries = slices.Clone(o.entries[old:])
}

// changed logs a change of the command outside of a transaction. The caller holds mu.
func (s *scope) changed(e entry) {
	e.ts = s.d.tick()
	s.d.log(e)
	s.writes = true
}

// token returns the resume token of an entry or of the invalidate event that follows it.
func (e *entry) token(invalidate bool) token {
	return token{ts: e.ts, index: e.txnIndex, invalidate: invalidate, uuid: e.uuid.Data}
}

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

// parseToken returns the text of a resume token and its time.
func parseToken(v any) (text string, ts bson.Timestamp, err error) {
	var p command.FirstError
	d, ok := v.(bson.D)
	p.Refuse(!ok, command.CodeTypeMismatch,
		"BSON field '$changeStream.resumeAfter' is the wrong type '%s', expected type 'object'", value.TypeName(v))
	text, ok = value.Get(d, "_data").(string)
	p.Refuse(!ok, 40647, "Bad resume token: _data of missing or of wrong type: %s", value.Text(d))
	b, err := hex.DecodeString(text)
	p.Refuse(err != nil, command.CodeFailedToParse, "resume token string was not a valid hex string")
	p.Refuse(len(b) < 12 || b[0] != keyTimestamp, 50811, "KeyString format error: invalid resume token %s", text)
	if p.Err != nil {
		return "", ts, p.Err
	}
	return strings.ToUpper(text), bson.Timestamp{T: binary.BigEndian.Uint32(b[1:]), I: binary.BigEndian.Uint32(b[5:])}, nil
}
