package data

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// errBlocked means that an open transaction has locked the data to be written.
var errBlocked = errors.New("locked by a transaction")

// locked runs a function with the data locked for writing. If a transaction blocks it, locked waits and runs it again.
func (s *scope) locked(f func() error) error {
	var timeout <-chan time.Time
	if !s.deadline.IsZero() {
		timeout = time.After(time.Until(s.deadline))
	}
	for {
		changed, err := s.attempt(f)
		if !errors.Is(err, errBlocked) {
			return err
		}
		select {
		case <-changed:
		case <-timeout:
			return timedOut()
		case <-s.req.Context.Done():
			return interrupted()
		}
	}
}

// attempt runs a function once, with the data locked for writing. It fails if the scope's transaction has been
// aborted or the term has ended. The returned channel is closed at the next change.
func (s *scope) attempt(f func() error) (changed <-chan struct{}, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.txn != nil && s.txn.state == aborted {
		return s.d.changed, s.txn.abortedError()
	}
	if s.req.Server.Term < s.d.term {
		return s.d.changed, command.Errorf(command.CodeInterruptedDueToReplStateChange, "operation was interrupted")
	}
	s.writes = false
	s.settle()
	if err = f(); err == nil {
		err = s.commit()
	}
	switch {
	case errors.Is(err, errBlocked):
		s.undo(0)
	case err != nil:
		s.undo(s.kept)
	}
	if err != nil { // part of it may remain
		s.writes = len(s.undoLog) > 0
	}
	if s.writes {
		s.d.announce()
	}
	return s.d.changed, err
}

// collection returns a collection as the scope sees it, or nil. The caller holds mu.
func (s *scope) collection(db, name string) *collection {
	if s.txn == nil {
		return s.d.collection(db, name)
	}
	return s.txn.collections[db+"."+name]
}

// records returns a collection and its current records, which may be read without the lock.
func (s *scope) records(db, name string) (*collection, []*record) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	c := s.collection(db, name)
	return c, c.snapshot()
}

// writable returns a collection to write to. A missing one is created or, without create, nil. The caller holds mu.
func (s *scope) writable(db, name string, create bool) (*collection, error) {
	c := s.collection(db, name)
	switch {
	case c == nil && create:
		c = newCollection(db, name, bson.D{})
		if err := s.add(c); err != nil {
			return nil, err
		}
		s.settle()
		s.d.announce()
	case c == nil:
	case c.isView():
		return nil, onView(c)
	case c.frozen:
		c = c.private()
		s.txn.collections[c.ns()] = c
	}
	return c, nil
}

// blocked returns errBlocked or a write conflict if another transaction has locked a key. The caller holds mu.
func (s *scope) blocked(keys ...lockKey) error {
	for _, k := range keys {
		if other := s.d.locks[k]; other == nil || other == s.txn {
			continue
		}
		if s.txn == nil {
			return errBlocked
		}
		return errWriteConflict
	}
	return nil
}

// claimKeys checks the unique keys of a document to be stored and, in a transaction, locks them.
func (s *scope) claimKeys(c *collection, doc bson.D, self int64) error {
	if len(s.d.locks) == 0 && s.txn == nil {
		return c.check(doc, self)
	}
	var keys []lockKey
	for x, k := range c.uniqueKeys(doc) {
		keys = append(keys, lockKey{ns: c.ns(), key: x.name + "\x00" + value.Key(bson.A(k))})
	}
	if err := cmp.Or(s.blocked(keys...), c.check(doc, self)); err != nil || s.txn == nil {
		return err
	}
	if main := s.d.collection(c.db, c.name); main != nil && main.check(doc, self) != nil {
		return errWriteConflict
	}
	s.d.lock(s.txn, keys...)
	return nil
}

// claimRecord checks that no transaction has locked a record. In a transaction it also checks that the record has not
// changed since the snapshot, and locks it.
func (s *scope) claimRecord(c *collection, r *record) error {
	k := lockKey{ns: c.ns(), rid: r.rid}
	if err := s.blocked(k); err != nil || s.txn == nil {
		return err
	}
	if s.d.locks[k] == nil {
		if main := s.d.collection(c.db, c.name); main == nil || main.find(r.rid) != r {
			return errWriteConflict
		}
	}
	s.d.lock(s.txn, k)
	return nil
}

// write performs a write and logs it, immediately or when the transaction commits. See collection.swap.
func (s *scope) write(c *collection, kind opKind, old, updated *record) {
	c.swap(old, updated)
	e := entry{kind: kind, db: c.db, coll: c.name, uuid: c.uuid, old: old, new: updated, preimages: c.preimages()}
	if s.txn != nil {
		s.txn.ops = append(s.txn.ops, e)
		return
	}
	s.writes = true
	position := s.d.oplog.next()
	s.undoLog = append(s.undoLog, func() {
		c.swap(updated, old)
		s.d.oplog.truncate(position)
	})
	e.ts = s.d.tick()
	if s.session != nil {
		e.lsid, e.txnNumber = s.req.LSID, s.session.txnNumber
	}
	s.d.log(e)
}

func (c *collection) preimages() bool {
	return value.Truthy(value.Get(value.As[bson.D](c.options, "changeStreamPreAndPostImages"), "enabled"))
}

// insert stores a document, which must begin with _id. The caller holds mu.
func (s *scope) insert(c *collection, doc bson.D, raw bson.Raw) error {
	if err := c.valid(doc, raw); err != nil {
		return err
	}
	if err := s.claimKeys(c, doc, 0); err != nil {
		return err
	}
	s.d.nextRID++
	r := newRecord(s.d.nextRID, raw)
	s.write(c, opInsert, nil, r)
	if s.txn != nil {
		s.d.lock(s.txn, lockKey{ns: c.ns(), rid: r.rid})
	}
	for c.capped && len(c.docs) > 1 && (c.maxSize > 0 && c.size > c.maxSize || c.maxDocs > 0 && int64(len(c.docs)) > c.maxDocs) {
		oldest := c.docs[0]
		c.swap(oldest, nil)
		s.undoLog = append(s.undoLog, func() { c.swap(nil, oldest) })
	}
	return nil
}

// replace replaces the document of a record and returns the new encoding. The caller holds mu.
func (s *scope) replace(c *collection, r *record, doc bson.D, kind opKind) (bson.Raw, error) {
	raw := value.Encode(doc)
	if len(raw) > maxDocument {
		return nil, command.Errorf(17419, "Resulting document after update is larger than %d", maxDocument)
	}
	if wire(s.req) < wire50 {
		var p command.FirstError
		if noDollars(&p, doc, ""); p.Err != nil {
			return nil, p.Err
		}
	}
	if err := s.claimRecord(c, r); err != nil {
		return nil, err
	}
	if bytes.Equal(raw, r.raw) {
		return raw, nil
	}
	if err := c.valid(doc, raw); err != nil {
		return nil, err
	}
	if err := s.claimKeys(c, doc, r.rid); err != nil {
		return nil, err
	}
	s.write(c, kind, r, newRecord(r.rid, raw))
	return raw, nil
}

// remove removes a record. The caller holds mu.
func (s *scope) remove(c *collection, r *record) error {
	if err := s.claimRecord(c, r); err != nil {
		return err
	}
	s.write(c, opDelete, r, nil)
	return nil
}

// valid applies the validator of a collection.
func (c *collection) valid(doc bson.D, raw bson.Raw) error {
	if c.validator == nil {
		return nil
	}
	for _, o := range c.options {
		if o.Key == "validationLevel" && o.Value == "off" || o.Key == "validationAction" && o.Value == "warn" {
			return nil
		}
	}
	if ok, err := c.validator.Matches(doc); ok || err != nil {
		return err
	}
	e := command.Errorf(command.CodeDocumentValidationFailure, "Document failed validation")
	e.Extra = bson.D{{Key: "errInfo", Value: bson.D{
		{Key: "failingDocumentId", Value: value.Get(doc, "_id")},
		{Key: "details", Value: validationDetails(value.As[bson.D](c.options, "validator"), doc)},
	}}}
	return e
}

// validationDetails returns the errInfo.details of a failed validation. Only a single $type rule has a reason.
func validationDetails(rules, doc bson.D) bson.D {
	if len(rules) == 1 {
		ops, _ := rules[0].Value.(bson.D)
		v, has := value.Field(doc, rules[0].Key)
		if len(ops) == 1 && ops[0].Key == "$type" && has {
			return bson.D{{Key: "operatorName", Value: "$type"}, {Key: "specifiedAs", Value: rules}, {Key: "reason", Value: "type did not match"},
				{Key: "consideredValue", Value: v}, {Key: "consideredType", Value: value.TypeName(v)}}
		}
	}
	return bson.D{{Key: "specifiedAs", Value: rules}}
}

// keep makes the changes so far survive an error. A blocked attempt is still undone.
func (s *scope) keep() { s.kept = len(s.undoLog) }

// settle makes the changes so far survive an error and a blocked attempt.
func (s *scope) settle() { s.undoLog, s.kept = nil, 0 }

// commit completes a successful attempt. The fail point onPrimaryTransactionalWrite applies to a retryable write that
// has changed something.
func (s *scope) commit() error {
	if s.session == nil || !s.writes {
		return nil
	}
	f, hit := s.req.FailPoint(failpoint.OnPrimaryTransactionalWrite)
	if !hit {
		return nil
	}
	if f.CloseConnection {
		s.req.HangUp()
	}
	if !f.HasCode {
		return nil
	}
	return command.Errorf(f.Code, "Failing write for %s:%d due to failpoint. The write must not be reflected.",
		sessionText(s.session.key), s.session.txnNumber)
}

// undo undoes the changes after the first n. The caller must have held mu since then.
func (s *scope) undo(n int) {
	for _, f := range slices.Backward(s.undoLog[n:]) {
		f()
	}
	s.undoLog = s.undoLog[:n]
}
