package store

import (
	"bytes"
	"cmp"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// MaxDocument is the maximum size of a document, in bytes.
const MaxDocument = 16 * 1024 * 1024

// lockKey identifies a record, an uncommitted unique key, or a namespace that is being created.
type lockKey struct {
	ns  string
	id  int64
	key string
}

var errWriteConflict = fault.Errorf(fault.WriteConflict,
	"WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.")

// blocked returns errBlocked or a write conflict if another transaction has locked a key.
func (tx *Tx) blocked(keys ...lockKey) error {
	for _, k := range keys {
		if other := tx.store.locks[k]; other == nil || other == tx.txn {
			continue
		}
		if tx.txn == nil {
			return errBlocked
		}
		return errWriteConflict
	}
	return nil
}

// lock locks keys for the transaction. No other transaction may have locked them.
func (tx *Tx) lock(keys ...lockKey) {
	for _, k := range keys {
		if tx.store.locks[k] == nil {
			tx.store.locks[k] = tx.txn
			tx.txn.locks = append(tx.txn.locks, k)
		}
	}
}

// claimKeys checks the unique keys of a document to be stored and, in a transaction, locks them.
func (tx *Tx) claimKeys(c *Collection, doc bson.D, self int64) error {
	if len(tx.store.locks) == 0 && tx.txn == nil {
		return c.check(doc, self)
	}
	var keys []lockKey
	for x, k := range c.uniqueKeys(doc) {
		keys = append(keys, lockKey{ns: c.NS(), key: x.Name + "\x00" + value.Key(bson.A(k))})
	}
	if err := cmp.Or(tx.blocked(keys...), c.check(doc, self)); err != nil || tx.txn == nil {
		return err
	}
	if main := tx.store.collection(c.DB, c.Name); main != nil && main.check(doc, self) != nil {
		return errWriteConflict
	}
	tx.lock(keys...)
	return nil
}

// claimRecord checks that no transaction has locked a record. In a transaction it also checks that the record has not
// changed since the snapshot, and locks it.
func (tx *Tx) claimRecord(c *Collection, r *Record) error {
	k := lockKey{ns: c.NS(), id: r.ID}
	if err := tx.blocked(k); err != nil || tx.txn == nil {
		return err
	}
	if tx.store.locks[k] == nil {
		if main := tx.store.collection(c.DB, c.Name); main == nil || main.Find(r.ID) != r {
			return errWriteConflict
		}
	}
	tx.lock(k)
	return nil
}

// write performs a write and logs it, immediately or when the transaction commits. See Collection.swap.
func (tx *Tx) write(c *Collection, kind Kind, old, updated *Record) {
	c.swap(old, updated)
	e := Entry{Kind: kind, DB: c.DB, Coll: c.Name, UUID: c.UUID, Old: old, New: updated, PreImages: c.preimages()}
	if tx.txn != nil {
		tx.txn.ops = append(tx.txn.ops, e)
		return
	}
	tx.wrote = true
	position := tx.store.oplog.Next()
	tx.undo = append(tx.undo, func() {
		c.swap(updated, old)
		tx.store.oplog.truncate(position)
	})
	e.TS = tx.store.tick()
	tx.store.log(e)
}

// Insert stores a document, which must begin with _id.
func (tx *Tx) Insert(c *Collection, doc bson.D, raw bson.Raw) error {
	if err := cmp.Or(tx.valid(c, nil, doc), tx.claimKeys(c, doc, 0)); err != nil {
		return err
	}
	if c.Capped && c.MaxSize > 0 && int64(len(raw)) > c.MaxSize {
		return fault.Errorf(fault.BadValue, "object to insert exceeds cappedMaxSize")
	}
	r := c.newRecord(raw)
	tx.write(c, Insert, nil, r)
	if tx.txn != nil {
		tx.lock(lockKey{ns: c.NS(), id: r.ID})
	}
	for c.Capped && len(c.docs) > 1 &&
		(c.MaxSize > 0 && c.size > c.MaxSize || c.MaxDocs > 0 && int64(len(c.docs)) > c.MaxDocs) {
		oldest := c.docs[0]
		c.swap(oldest, nil)
		tx.undo = append(tx.undo, func() { c.swap(nil, oldest) })
	}
	return nil
}

// Replace replaces the document of a record and returns the new encoding. kind is Update or Replace.
func (tx *Tx) Replace(c *Collection, r *Record, doc bson.D, kind Kind) (bson.Raw, error) {
	raw := value.Encode(doc)
	if len(raw) > MaxDocument {
		return nil, fault.Errorf(17419, "Resulting document after update is larger than %d", MaxDocument)
	}
	if err := tx.claimRecord(c, r); err != nil || bytes.Equal(raw, r.Raw) {
		return raw, err
	}
	if err := cmp.Or(tx.valid(c, r, doc), tx.claimKeys(c, doc, r.ID)); err != nil {
		return nil, err
	}
	tx.write(c, kind, r, NewRecord(r.ID, raw))
	return raw, nil
}

// Remove removes a record.
func (tx *Tx) Remove(c *Collection, r *Record) error {
	err := tx.claimRecord(c, r)
	if err == nil {
		tx.write(c, Delete, r, nil)
	}
	return err
}
