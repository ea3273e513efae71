package data

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// errBlocked reports that an open transaction has locked what is to be written.
var errBlocked = errors.New("locked by a transaction")

// locked runs a function with the data locked for writing. Where a transaction
// stands in its way, it waits for the transaction's end and runs it again.
func (s *scope) locked(f func() error) error {
	var timeout <-chan time.Time
	if ms := maxTimeMS(s.req); ms > 0 {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		timeout = t.C
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

// attempt runs a function once, with the data locked for writing, unless the
// scope's transaction has been aborted since it was found. The channel is
// closed at the next write.
func (s *scope) attempt(f func() error) (changed <-chan struct{}, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.txn != nil && s.txn.state == aborted {
		return s.d.changed, s.txn.gone()
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
	if err != nil { // not if it was all undone
		s.writes = s.work.from.oplog != began || len(s.work.steps) > 0
	}
	if s.writes {
		s.d.announce()
	}
	return s.d.changed, err
}

// collection is a collection as the scope sees it, nil if it does not exist. The
// caller holds mu.
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

// records are the current records of a collection, to be read without the
// lock.
func (s *scope) records(db, name string) (*collection, []*record) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	c := s.collection(db, name)
	return c, c.snapshot()
}

// writable is a collection to write to, made if it is not there and make is
// set. The caller holds mu.
func (s *scope) writable(db, name string, create bool) (*collection, error) {
	c := s.collection(db, name)
	if c != nil && c.isView() {
		return nil, onView(c)
	}
	if s.txn == nil {
		if c == nil && create {
			if s.blocked(lockKey{ns: db + "." + name}) {
				return nil, errBlocked
			}
			c = newCollection(db, name, bson.D{})
			s.d.addCollection(c)
			s.changed(c.created())
			s.settle()
		}
		return c, nil
	}
	ns := db + "." + name
	if p := s.txn.copies[ns]; p != nil {
		return p, nil
	}
	switch {
	case c != nil:
		c = c.private()
	case create:
		c = newCollection(db, name, bson.D{})
		return c, s.createLater(c)
	default:
		return nil, nil
	}
	s.txn.copies[ns] = c
	return c, nil
}

// blocked reports whether a key of a lock is another's. The caller holds mu.
func (s *scope) blocked(k lockKey) bool {
	other := s.d.locks[k]
	return other != nil && other != s.txn
}

// keyLocks are the locks of the guarded keys of a document.
func keyLocks(c *collection, doc bson.D) []lockKey {
	var out []lockKey
	for x, k := range c.guarded(doc) {
		out = append(out, lockKey{ns: c.ns(), key: x.name + "\x00" + value.Key(bson.A(k))})
	}
	return out
}

// claim checks the guarded keys of a document that is to be stored, and in a
// transaction locks them.
func (s *scope) claim(c *collection, doc bson.D, self int64) error {
	if len(s.d.locks) == 0 && s.txn == nil {
		return c.check(doc, self)
	}
	keys := keyLocks(c, doc)
	for _, k := range keys {
		if s.blocked(k) {
			if s.txn == nil {
				return errBlocked
			}
			return errWriteConflict
		}
	}
	if e := c.check(doc, self); e != nil {
		return e
	}
	if s.txn == nil {
		return nil
	}
	if main := s.d.collection(c.db, c.name); main != nil {
		if e := main.check(doc, self); e != nil {
			return errWriteConflict
		}
	}
	for _, k := range keys {
		if err := s.d.lock(s.txn, k); err != nil {
			return err
		}
	}
	return nil
}

// hold makes sure that a record may be written: nobody else has locked it, and
// in a transaction nobody has changed it since.
func (s *scope) hold(c *collection, r *record) error {
	k := lockKey{ns: c.ns(), rid: r.rid}
	if s.txn == nil {
		if s.blocked(k) {
			return errBlocked
		}
		return nil
	}
	if s.d.locks[k] != s.txn {
		main := s.d.collection(c.db, c.name)
		// A record that the transaction inserted is in no other place.
		if (main == nil || main.find(r.rid) != r) && !s.inserted(c, r) {
			return errWriteConflict
		}
	}
	return s.d.lock(s.txn, k)
}

func (s *scope) inserted(c *collection, r *record) bool {
	return slices.ContainsFunc(s.txn.ops, func(op entry) bool {
		return op.kind == opInsert && op.new.rid == r.rid && op.db == c.db && op.coll == c.name
	})
}

// wrote logs a write, at once or with the transaction's commit.
func (s *scope) wrote(c *collection, kind opKind, old, now *record) {
	e := entry{kind: kind, db: c.db, coll: c.name, uuid: c.uuid, old: old, new: now, preimages: c.preimages()}
	if s.txn != nil {
		s.txn.ops = append(s.txn.ops, e)
		return
	}
	s.writes = true
	s.work.steps = append(s.work.steps, step{c, old, now})
	e.ts = s.d.tick()
	if s.session != nil {
		e.lsid, e.txnNumber = s.req.LSID, s.session.txnNumber
	}
	s.d.log(e)
}

func (c *collection) preimages() bool {
	return value.Truthy(value.Get(value.As[bson.D](c.options, "changeStreamPreAndPostImages"), "enabled"))
}

// insert stores a document with its _id in first place. The caller holds mu.
func (s *scope) insert(c *collection, doc bson.D, raw bson.Raw) error {
	if err := c.valid(doc, raw); err != nil {
		return err
	}
	if err := s.claim(c, doc, 0); err != nil {
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
		c.drop(c.docs[0])
	}
	return nil
}

// replace puts another document in the place of one. The caller holds mu.
func (s *scope) replace(c *collection, r *record, doc bson.D, kind opKind) (bson.Raw, error) {
	raw := value.Encode(doc)
	if len(raw) > maxDocument {
		return nil, command.Errorf(17419, "Resulting document after update is larger than %d", maxDocument)
	}
	if err := dollars(s.req, doc); err != nil {
		return nil, err
	}
	if err := s.hold(c, r); err != nil {
		return nil, err
	}
	if bytes.Equal(raw, r.raw) {
		return raw, nil
	}
	if err := c.valid(doc, raw); err != nil {
		return nil, err
	}
	if err := s.claim(c, doc, r.rid); err != nil {
		return nil, err
	}
	now := newRecord(r.rid, raw)
	c.swap(now)
	s.wrote(c, kind, r, now)
	return raw, nil
}

// remove removes a document. The caller holds mu.
func (s *scope) remove(c *collection, r *record) error {
	if err := s.hold(c, r); err != nil {
		return err
	}
	c.drop(r)
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
	ok, err := c.validator.Matches(doc)
	if err != nil {
		return err
	}
	if ok {
		return nil
	}
	e := command.Errorf(command.CodeDocumentValidationFailure, "Document failed validation")
	e.Extra = bson.D{{Key: "errInfo", Value: bson.D{
		{Key: "failingDocumentId", Value: value.Get(doc, "_id")},
		{Key: "details", Value: validationDetails(value.As[bson.D](c.options, "validator"), doc)},
	}}}
	return e
}

// validationDetails says which rule a document broke, for the rule of a type as the server does; for
// others it names the rules alone.
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
