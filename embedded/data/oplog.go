package data

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// opKind is the kind of an oplog entry.
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

// entry is an oplog entry.
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
