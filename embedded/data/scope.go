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
	if ms := maxTimeMS(s.req); ms > 0 {
		timeout = time.After(time.Duration(ms) * time.Millisecond)
	}
	for {
		changed, err := s.attempt(f)
		if !errors.Is(err, errBlocked) {
			return err
		}
		var expires <-chan time.Time
		var next time.Time
		s.d.changing(func() { next = s.d.expire() })
		if !next.IsZero() {
			expires = time.After(time.Until(next))
		}
		select {
		case <-changed:
		case <-expires:
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
	s.writes, s.work = false, work{steps: s.work.steps[:0], recorded: s.work.recorded[:0]}
	s.settle()
	began := s.work.from.oplog
	if err = f(); err == nil {
		err = s.commit()
	}
	switch {
	case errors.Is(err, errBlocked):
		s.undo(s.work.from)
	case err != nil:
		s.undo(s.work.kept)
	}
	if err != nil { // part of it may remain
		s.writes = s.work.from.oplog != began || len(s.work.steps) > 0
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
	ns := db + "." + name
	if c := s.txn.copies[ns]; c != nil {
		return c
	}
	return s.txn.snapshot[ns]
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
	case c == nil:
	case c.isView():
		return nil, onView(c)
	case s.txn != nil && s.txn.copies[c.ns()] == nil:
		c = c.private()
		s.txn.copies[c.ns()] = c
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
		main := s.d.collection(c.db, c.name)
		// A record inserted by the transaction exists only in its copy.
		if (main == nil || main.find(r.rid) != r) && !s.inserted(c, r) {
			return errWriteConflict
		}
	}
	s.d.lock(s.txn, k)
	return nil
}

func (s *scope) inserted(c *collection, r *record) bool {
	return slices.ContainsFunc(s.txn.ops, func(op entry) bool {
		return op.kind == opInsert && op.new.rid == r.rid && op.db == c.db && op.coll == c.name
	})
}

// wrote logs a write, immediately or when the transaction commits.
func (s *scope) wrote(c *collection, kind opKind, old, updated *record) {
	e := entry{kind: kind, db: c.db, coll: c.name, uuid: c.uuid, old: old, new: updated, preimages: c.preimages()}
	if s.txn != nil {
		s.txn.ops = append(s.txn.ops, e)
		return
	}
	s.writes = true
	s.work.steps = append(s.work.steps, step{c, old, updated})
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
	c.add(r)
	s.wrote(c, opInsert, nil, r)
	for c.capped && len(c.docs) > 1 && (c.maxSize > 0 && c.size > c.maxSize || c.maxDocs > 0 && int64(len(c.docs)) > c.maxDocs) {
		if s.txn == nil {
			s.work.steps = append(s.work.steps, step{c, c.docs[0], nil})
		}
		c.remove(c.docs[0])
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
		if err := noDollars(doc, ""); err != nil {
			return nil, err
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
	updated := newRecord(r.rid, raw)
	c.replace(updated)
	s.wrote(c, kind, r, updated)
	return raw, nil
}

// remove removes a record. The caller holds mu.
func (s *scope) remove(c *collection, r *record) error {
	if err := s.claimRecord(c, r); err != nil {
		return err
	}
	c.remove(r)
	s.wrote(c, opDelete, r, nil)
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

// work is the undo log of the current attempt of a scope outside of a transaction.
type work struct {
	steps    []step
	recorded []int32 // statement ids recorded in the session
	from     mark    // the state to which a blocked attempt is undone
	kept     mark    // the state to which a failed attempt is undone
}

// step is a change of a record. old is nil for an insert, new for a delete.
type step struct {
	c        *collection
	old, new *record
}

// mark is a position in the undo log.
type mark struct {
	steps, recorded int
	oplog           int64
}

func (s *scope) mark() mark {
	return mark{len(s.work.steps), len(s.work.recorded), s.d.oplog.next()}
}

// keep makes the changes so far survive an error. A blocked attempt is still undone.
func (s *scope) keep() { s.work.kept = s.mark() }

// settle makes the changes so far survive an error and a blocked attempt.
func (s *scope) settle() {
	s.keep()
	s.work.from = s.work.kept
}

// commit completes a successful attempt. The fail point onPrimaryTransactionalWrite applies to a retryable write that
// has changed something.
func (s *scope) commit() error {
	if s.session == nil || len(s.work.steps) == s.work.from.steps {
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

// undo undoes the changes since a mark. The caller must have held mu since then.
func (s *scope) undo(to mark) {
	w := &s.work
	if len(w.steps) == to.steps {
		return
	}
	for _, u := range slices.Backward(w.steps[to.steps:]) {
		switch {
		case u.old == nil:
			u.c.remove(u.new)
		case u.new == nil:
			u.c.add(u.old)
		default:
			u.c.replace(u.old)
		}
	}
	for _, id := range w.recorded[to.recorded:] {
		delete(s.session.statements, id)
	}
	w.steps, w.recorded = w.steps[:to.steps], w.recorded[:to.recorded]
	s.d.oplog.truncate(to.oplog)
}
