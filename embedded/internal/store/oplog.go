package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Kind is a kind of oplog entry: the operationType of its change event.
type Kind string

const (
	Insert        Kind = "insert"
	Update        Kind = "update"
	Replace       Kind = "replace"
	Delete        Kind = "delete"
	Create        Kind = "create"
	Drop          Kind = "drop"
	Rename        Kind = "rename"
	DropDatabase  Kind = "dropDatabase"
	CreateIndexes Kind = "createIndexes"
	DropIndexes   Kind = "dropIndexes"
	Modify        Kind = "modify"
	Shard         Kind = "shardCollection"
)

// Entry is a logged change.
type Entry struct {
	TS        bson.Timestamp
	TxnIndex  int32 // position within a transaction
	Kind      Kind
	DB, Coll  string
	UUID      bson.Binary
	Old, New  *Record      // before and after a write; nil if the document did not exist
	To        string       // Rename: the new namespace
	NSType    string       // Create: collection, view or timeseries
	Detail    bson.D       // operationDescription of the expanded event
	PreImages bool         // the collection keeps pre-images
	Dropped   *bson.Binary // Rename: the UUID of the dropped target
	LSID      bson.Raw
	TxnNumber int64
	Wall      bson.DateTime
}

// Logged returns the entry of a change of the collection, with its operationDescription.
func (c *Collection) Logged(kind Kind, detail bson.D) Entry {
	return Entry{Kind: kind, DB: c.DB, Coll: c.Name, UUID: c.UUID, Detail: detail}
}

// MaxOplog and MaxOplogBytes limit the oplog. It is truncated to these limits when it exceeds twice their value.
const (
	MaxOplog      = 20000
	MaxOplogBytes = 128 << 20
)

// bytes estimates the size of an entry.
func (e *Entry) bytes() int {
	n := 256
	for _, r := range []*Record{e.Old, e.New} {
		if r != nil {
			n += len(r.Raw)
		}
	}
	return n
}

// oplog is the log of changes, for change streams and snapshot reads.
type oplog struct {
	History
	bytes int
	shown shown
}

// truncate removes the entries from a sequence number on.
func (o *oplog) truncate(seq int64) {
	keep := max(seq-o.First, 0)
	for _, e := range o.Entries[keep:] {
		o.bytes -= e.bytes()
	}
	o.Entries = o.Entries[:keep]
	o.shown.forget(seq)
}

func (o *oplog) append(e Entry) {
	o.Entries = append(o.Entries, e)
	o.bytes += e.bytes()
	if len(o.Entries) <= 2*MaxOplog && o.bytes <= 2*MaxOplogBytes {
		return
	}
	old := 0
	for ; len(o.Entries)-old > MaxOplog || o.bytes > MaxOplogBytes; old++ {
		o.bytes -= o.Entries[old].bytes()
	}
	o.From = o.Entries[old-1].TS
	o.First += int64(old)
	o.Entries = slices.Clone(o.Entries[old:])
}

// log appends a change. The caller has ticked.
func (s *Store) log(e Entry) {
	if s.logged {
		e.Wall = bson.NewDateTimeFromTime(time.Now())
		s.oplog.append(e)
	}
}

// Log logs a change outside of a transaction.
func (tx *Tx) Log(e Entry) {
	e.TS = tx.store.tick()
	tx.store.log(e)
	tx.wrote = true
}

// History is the oplog at a time. It is immutable.
type History struct {
	Entries []Entry
	First   int64          // sequence number of Entries[0]
	From    bson.Timestamp // time of the last removed entry
	Now     bson.Timestamp
}

// History returns the oplog.
func (s *Store) History() History {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := s.oplog.History
	h.Entries, h.Now = slices.Clip(h.Entries), s.Now()
	return h
}

// Next returns the sequence number of the next entry.
func (h *History) Next() int64 { return h.First + int64(len(h.Entries)) }

// At returns the entry with a sequence number.
func (h *History) At(seq int64) (*Entry, bool) {
	if seq < h.First || seq >= h.Next() {
		return nil, false
	}
	return &h.Entries[seq-h.First], true
}

// Seek returns the sequence number of the first entry at a time or later.
func (h *History) Seek(ts bson.Timestamp) int64 {
	i, _ := slices.BinarySearchFunc(h.Entries, ts, func(e Entry, ts bson.Timestamp) int { return e.TS.Compare(ts) })
	return h.First + int64(i)
}

// unavailable is the error of a read at a time before the catalog has changed.
func unavailable(at, changed bson.Timestamp) error {
	return fault.Errorf(fault.SnapshotUnavailable,
		"Unable to read from a snapshot due to pending collection catalog changes; "+
			"please retry the operation. Snapshot timestamp is %s. Collection minimum is %s",
		value.Text(at), value.Text(changed))
}

// Seen returns an error if another collection with the name was created after the snapshot of the transaction.
func (tx *Tx) Seen(db, name string) error {
	if tx.txn == nil {
		return nil
	}
	now, seen := tx.store.collection(db, name), tx.txn.collections[db+"."+name]
	if now == nil || seen != nil && value.Equal(seen.UUID, now.UUID) {
		return nil
	}
	return unavailable(tx.txn.at, now.created)
}

// RecordsAt returns the records of a collection at an earlier time: the current records with later writes undone. A
// transaction opens its snapshot before it finds the collection.
func (w *Work) RecordsAt(db, name string, records []*Record, at bson.Timestamp) ([]*Record, error) {
	h := w.store.History()
	tooOld := fault.Errorf(fault.SnapshotTooOld, "Read timestamp %s is older than the oldest available timestamp.",
		value.Text(at))
	if w.InTransaction() && at.Before(latest(h.From, w.store.began)) {
		return nil, tooOld
	}
	byID := map[int64]*Record{}
	for _, r := range records {
		byID[r.ID] = r
	}
	for _, e := range slices.Backward(h.Entries) {
		if e.TS.Compare(at) <= 0 {
			break
		}
		if e.DB != db || e.Coll != name {
			continue
		}
		switch e.Kind {
		case Insert:
			delete(byID, e.New.ID)
		case Update, Replace, Delete:
			byID[e.Old.ID] = e.Old
		case Create, Drop, Rename, DropDatabase:
			return nil, unavailable(at, e.TS)
		}
	}
	if at.Before(h.From) {
		return nil, tooOld
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b *Record) int { return cmp.Compare(a.ID, b.ID) }), nil
}
