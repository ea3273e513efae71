package data

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// maxBatch is the maximum number of statements of a command.
const maxBatch = 100000

// batch is the state of a running write command.
type batch struct {
	s       *scope
	results []effect
	ordered bool
	stmtID  int64
	stmtIDs bson.A
	retried bson.A // ids of the statements that an earlier attempt has performed
}

type effect struct {
	i    int
	kind writeKind
	st   *statement
	err  *command.Error
}

type writeKind uint8

const (
	inserting writeKind = iota
	updating
	deleting
)

// newBatch parses the common fields of write commands.
func newBatch(s *scope, a *args) *batch {
	b := &batch{s: s, ordered: true, stmtIDs: a.array("stmtIds"), stmtID: a.number("stmtId", 0)}
	if a.has("ordered") {
		b.ordered = a.flag("ordered")
	}
	return b
}

// id returns the statement id of the i-th statement.
func (b *batch) id(i int) int32 {
	if i < len(b.stmtIDs) {
		n, _ := value.Int64(b.stmtIDs[i])
		return int32(n)
	}
	return int32(b.stmtID) + int32(i)
}

// recorded returns the result of a statement that an earlier attempt has performed, or nil. The caller holds mu.
func (b *batch) recorded(i int) *statement {
	if b.s.session == nil {
		return nil
	}
	st := b.s.session.statements[b.id(i)]
	if st != nil {
		b.retried = append(b.retried, b.id(i))
	}
	return st
}

// retriedFields returns the field retriedStmtIds, which servers report since 6.0.
func (b *batch) retriedFields() bson.D {
	if len(b.retried) == 0 || wire(b.s.req) < wire60 {
		return nil
	}
	return bson.D{{Key: "retriedStmtIds", Value: b.retried}}
}

// record records the result of a statement for retries. The caller holds mu.
func (b *batch) record(i int, st *statement) {
	if b.s.session != nil && b.s.session.statements != nil {
		b.s.session.statements[b.id(i)] = st
		b.s.undoLog = append(b.s.undoLog, func() { delete(b.s.session.statements, b.id(i)) })
	}
}

// errStop means that no further statements are run.
var errStop = errors.New("the batch ends here")

// fail records the error of a statement. It returns the error if the command fails, and errStop if no further
// statements may be run.
func (b *batch) fail(w *write, err error) error {
	var e *command.Error
	if !errors.As(err, &e) || b.s.failsCommand(e.Code) {
		return err
	}
	b.results = append(b.results, effect{i: w.i, kind: w.kind, err: e})
	// An error aborts a transaction, even if the batch is not ordered.
	if b.ordered || b.s.txn != nil {
		return errStop
	}
	return nil
}

// failsCommand reports whether an error of a statement fails the whole command.
func (s *scope) failsCommand(code int32) bool {
	switch {
	case code == errWriteConflict.Code, command.Interruption.Has(code):
		return true
	case code == command.CodeTransactionTooOld:
		return !mongos(s.req) || s.req.Row.Name == "bulkWrite"
	}
	return s.txn != nil && (command.Transient.Has(code) || command.Retriable.Has(code))
}

// once performs an update or a delete unless an earlier attempt has performed it.
func (b *batch) once(w *write) (st *statement, err error) {
	if err := b.s.prepare(w); err != nil {
		return nil, err
	}
	if err := b.s.rehearse(w); err != nil {
		return nil, err
	}
	err = b.s.locked(func() (err error) {
		if st = b.recorded(w.i); st != nil {
			return w.checkRetry(st)
		}
		if st, err = b.s.do(w); err == nil && st.n > 0 {
			b.record(w.i, st)
		}
		return err
	})
	return st, err
}

// runAll performs statements in order. Consecutive inserts into a collection are stored together.
func (b *batch) runAll(writes []*write) error {
	var err error
	for len(writes) > 0 && err == nil {
		w, n := writes[0], 1
		if w.kind == inserting {
			for n < len(writes) && writes[n].kind == inserting && writes[n].db == w.db && writes[n].coll == w.coll {
				n++
			}
			err = b.insertAll(writes[:n])
		} else {
			err = b.run(w)
		}
		writes = writes[n:]
	}
	if err == errStop {
		return nil
	}
	return err
}

// run performs an update or a delete and records its result or error.
func (b *batch) run(w *write) error {
	if b.s.session != nil && w.multi {
		return b.fail(w, command.Errorf(command.CodeInvalidOptions, "Cannot use %s", w.notRetryable))
	}
	st, err := b.once(w)
	if err != nil {
		return b.fail(w, err)
	}
	b.results = append(b.results, effect{i: w.i, kind: w.kind, st: st})
	return nil
}

// opTime returns the fields that members of a replica set add to write replies.
func (s *scope) opTime() bson.D {
	d, req := s.d, s.req
	if !d.opts.ReplicaSet || d.opts.Sharded || mongos(req) {
		return nil
	}
	ts := d.clock.time()
	return bson.D{
		{Key: "opTime", Value: bson.D{{Key: "ts", Value: ts}, {Key: "t", Value: req.Server.Term}}},
		{Key: "electionId", Value: req.Server.ElectionID},
	}
}
