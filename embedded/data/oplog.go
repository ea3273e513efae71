package data

import (
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
	rid       int64
	pre, post bson.Raw
	to        string       // rename: the new namespace
	nsType    string       // create: collection, view or timeseries
	detail    bson.D       // operationDescription of expanded events
	preimages bool         // the collection keeps pre-images
	dropped   *bson.Binary // rename: the UUID of the target that was dropped
	lsid      bson.Raw
	txnNumber int64
	wall      bson.DateTime
}

// maxOplog bounds the log; what is older cannot be resumed from.
const maxOplog = 20000

// oplog is the log of writes, from which change streams and snapshots read.
type oplog struct {
	entries []entry
	first   int64 // sequence number of entries[0]
	from    bson.Timestamp
}

func (o *oplog) next() int64 { return o.first + int64(len(o.entries)) }

// truncate forgets what was logged from a number on.
func (o *oplog) truncate(seq int64) { o.entries = o.entries[:max(seq-o.first, 0)] }

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
	e.wall = bson.NewDateTimeFromTime(d.opts.Now())
	d.oplog.entries = append(d.oplog.entries, e)
	if n := len(d.oplog.entries); n > 2*maxOplog {
		d.oplog.from = d.oplog.entries[n-maxOplog-1].ts
		d.oplog.first += int64(n - maxOplog)
		d.oplog.entries = append([]entry(nil), d.oplog.entries[n-maxOplog:]...)
	}
}
