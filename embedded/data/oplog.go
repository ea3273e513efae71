package data

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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

// token is the place of an entry, or of the invalidation that follows it.
func (e *entry) token(invalidate bool) token {
	return token{ts: e.ts, index: e.txnIndex, invalidate: invalidate, uuid: e.uuid.Data}
}
