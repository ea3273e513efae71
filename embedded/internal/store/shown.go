package store

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// shown is the oplog as the collection local.oplog.rs: a record for each entry, made when the collection is read.
type shown struct {
	mu      sync.Mutex
	uuid    bson.Binary
	records []*Record // of the entries from first on
	first   int64
}

// isOplog reports whether a namespace is the oplog's.
func isOplog(db, name string) bool { return db == "local" && name == "oplog.rs" }

// collection returns a snapshot of the oplog as a capped collection without indexes. The caller holds the store's lock.
func (o *oplog) collection() *Collection {
	s := &o.shown
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uuid.Data) == 0 {
		s.uuid = value.NewUUID()
	}
	s.records = s.records[min(max(o.First-s.first, 0), int64(len(s.records))):]
	s.first = o.First
	for i := len(s.records); i < len(o.Entries); i++ {
		e := &o.Entries[i]
		s.records = append(s.records, NewRecord(o.First+int64(i)+1, value.Encode(e.document())))
	}
	n := len(s.records)
	return &Collection{DB: "local", Name: "oplog.rs", UUID: s.uuid, Capped: true, MaxSize: MaxOplogBytes,
		Options: value.Doc("capped", true, "size", int64(MaxOplogBytes)), docs: s.records[:n:n], shared: true,
		lastID: new(int64), frozen: true}
}

// forget removes the records of entries from a sequence number on.
func (s *shown) forget(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := max(seq-s.first, 0); n < int64(len(s.records)) {
		s.records = s.records[:n:n]
	}
}

// document returns the entry in the form of the oplog. An update has the new document, as a replacement has.
func (e *Entry) document() bson.D {
	op, ns := "c", e.DB+".$cmd"
	var o, o2 bson.D
	id := func(r *Record) bson.D { return value.Doc("_id", value.Get(r.doc, "_id")) }
	switch e.Kind {
	case Insert:
		op, o = "i", e.New.doc
	case Update, Replace:
		op, o, o2 = "u", e.New.doc, id(e.New)
	case Delete:
		op, o = "d", id(e.Old)
	case Rename:
		o = value.Doc("renameCollection", e.DB+"."+e.Coll, "to", e.To)
	case DropDatabase:
		o = value.Doc("dropDatabase", int32(1))
	default:
		name := string(e.Kind)
		if e.Kind == Modify {
			name = "collMod"
		}
		o = append(value.Doc(name, e.Coll), e.Detail...)
	}
	if op != "c" {
		ns = e.DB + "." + e.Coll
	}
	out := value.AddIf(value.Doc("op", op, "ns", ns), len(e.UUID.Data) > 0, "ui", e.UUID)
	out = value.AddIf(value.Append(out, "o", o), o2 != nil, "o2", o2)
	return value.Append(out, "ts", e.TS, "t", int64(1), "v", int64(2), "wall", e.Wall)
}
