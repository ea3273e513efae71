package data

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

type txnState uint8

const (
	running txnState = iota
	committed
	aborted
)

// transaction is one multi-document transaction. It reads a snapshot of all
// collections, writes to copies of its own, and its writes take effect at the
// commit. Records that it has written are locked: whoever else writes them
// conflicts, or waits if it is not in a transaction.
type transaction struct {
	session *session
	number  int64
	state   txnState
	server  string // the address of the mongos, which alone can continue it
	// touched is set once the transaction has used the shard.
	touched  bool
	snapshot map[string]*collection // by namespace, as when it began
	copies   map[string]*collection // what it writes
	created  []*collection          // what it makes
	ops      []entry
	locks    []lockKey
	lsid     bson.Raw
	ends     time.Time // when it has been open for too long; zero: never
}

// lockKey is a record, or a unique key that is not committed yet.
type lockKey struct {
	ns  string
	rid int64
	key string
}

var errWriteConflict = &command.Error{Code: command.CodeWriteConflict, Name: "WriteConflict",
	Message: "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction."}

func mongos(req *command.Request) bool { return req.Server.Role == command.Mongos }

func address(req *command.Request) string { return req.Server.Address }

func wire(req *command.Request) int { return req.Server.Wire }

// join begins or continues the transaction of a request. The caller holds mu.
func (d *Data) join(req *command.Request, s *session, n int64) (*transaction, error) {
	name := req.Row.Name
	ending := name == "commitTransaction" || name == "abortTransaction"
	_, wc := req.Body.Lookup("writeConcern").DocumentOK()
	_, rc := req.Body.Lookup("readConcern").DocumentOK()
	if req.StartTransaction {
		switch {
		case n < s.txnNumber:
			return nil, command.Errorf(command.CodeTransactionTooOld, "Cannot start transaction %d on session %s because a newer transaction %d has already started.", n, sessionText(s.key), s.txnNumber)
		case n == s.txnNumber && mongos(req):
			return nil, command.Errorf(command.CodeConflictingOperationInProgress, "txnNumber %d for session %s already started", n, sessionText(s.key))
		case n == s.txnNumber:
			return nil, command.Errorf(command.CodeConflictingOperationInProgress, "Only servers in a sharded cluster can start a new transaction at the active transaction number")
		}
		if wc {
			return nil, command.Errorf(command.CodeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
		}
		d.advance(s, n)
		s.txn = &transaction{session: s, number: n, server: address(req), lsid: req.LSID,
			snapshot: map[string]*collection{}, copies: map[string]*collection{}}
		if req.TransactionLifetime > 0 {
			s.txn.ends = time.Now().Add(req.TransactionLifetime)
		}
		for _, collections := range d.databases {
			for _, c := range collections {
				view := *c
				view.docs = c.snapshot()
				view.shared, view.frozen = true, true
				s.txn.snapshot[c.ns()] = &view
			}
		}
		return s.txn, nil
	}
	if ending && mongos(req) && (s.txn == nil || s.txnNumber != n || s.txn.server != address(req)) {
		// Another mongos recovers the outcome from the shard, if the command names it.
		_, hasToken := req.Body.Lookup("recoveryToken").DocumentOK()
		switch {
		case name == "abortTransaction":
			return nil, noSuch("cannot continue txnId %d for session %s with txnId %d", s.txnNumber, sessionText(s.key), n)
		case !hasToken:
			return nil, command.Errorf(50940, "Cannot recover the transaction decision without a recoveryToken")
		case s.txn == nil || s.txnNumber != n:
			return nil, noSuch("Transaction %d has been aborted.", n)
		case s.txn.state == running:
			d.abort(s.txn)
			return nil, s.txn.gone()
		}
		return s.txn, nil
	}
	if n != s.txnNumber || s.txn == nil || mongos(req) && s.txn.server != address(req) {
		if mongos(req) {
			return nil, noSuch("cannot continue txnId %d for session %s with txnId %d", s.txnNumber, sessionText(s.key), n)
		}
		if n < s.txnNumber {
			return nil, command.Errorf(command.CodeTransactionTooOld, "Transaction number %d is too old: session %s is at %d", n, sessionText(s.key), s.txnNumber)
		}
		return nil, noSuch("Given transaction number %d does not match any in-progress transactions. The active transaction number is %d", n, s.txnNumber)
	}
	if wc && !ending {
		return nil, command.Errorf(command.CodeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	if ending {
		return s.txn, nil
	}
	if rc && name != "getMore" {
		return nil, command.Errorf(command.CodeInvalidOptions, "Only the first command in a transaction may specify a readConcern")
	}
	switch s.txn.state {
	case committed:
		e := s.txn.over()
		if mongos(req) && name == "find" {
			e.Message = "Encountered non-retryable error during query :: caused by :: " + e.Message
		}
		return nil, e
	case aborted:
		return nil, s.txn.gone()
	}
	return s.txn, nil
}

func noSuch(format string, args ...any) *command.Error {
	return command.Errorf(command.CodeNoSuchTransaction, format, args...)
}

// expire aborts the transactions that have been open for too long, and says
// when the next one will have been; the zero time if none will. The caller
// holds mu.
func (d *Data) expire() (next time.Time) {
	now := time.Now()
	for _, s := range d.sessions {
		t := s.txn
		switch {
		case t == nil || t.state != running || t.ends.IsZero():
		case !now.Before(t.ends):
			d.abort(t)
		case next.IsZero() || t.ends.Before(next):
			next = t.ends
		}
	}
	return next
}

// gone is the error of a command whose transaction has been aborted.
func (t *transaction) gone() *command.Error {
	return noSuch("Transaction %d has been aborted.", t.number)
}

// over is the error of a command whose transaction has been committed.
func (t *transaction) over() *command.Error {
	return command.Errorf(command.CodeTransactionCommitted, "Transaction %d has been committed.", t.number)
}

// abort ends a transaction without effect. The caller holds mu.
func (d *Data) abort(t *transaction) {
	t.state = aborted
	d.release(t)
}

// abortOpen aborts the transaction of a session, if it is open. The caller holds mu.
func (d *Data) abortOpen(s *session) {
	if s.txn != nil && s.txn.state == running {
		d.abort(s.txn)
	}
}

func (d *Data) release(t *transaction) {
	for _, k := range t.locks {
		delete(d.locks, k)
	}
	t.locks, t.snapshot, t.copies = nil, nil, nil
	d.announce()
}

// commit makes the writes of a transaction take effect together. The caller
// holds mu. The locks have kept what it wrote as the snapshot had it.
func (d *Data) commit(t *transaction) {
	t.state = committed
	for _, c := range t.created {
		// Its documents come with the writes below; indexes are as they are.
		fresh := *c
		fresh.docs, fresh.size, fresh.shared = nil, 0, false
		fresh.indexes = c.emptyIndexes()
		d.addCollection(&fresh)
		e := c.created()
		e.ts = d.tick()
		d.log(e)
	}
	t.created = nil
	if len(t.ops) > 0 {
		ts := d.tick()
		for i, op := range t.ops {
			c := d.collection(op.db, op.coll)
			if c == nil {
				continue // dropped since, which waits for us: it cannot be
			}
			switch op.kind {
			case opInsert:
				c.add(op.new)
			case opUpdate, opReplace:
				c.replace(op.new)
			case opDelete:
				c.remove(op.old)
			}
			op.ts, op.txnIndex, op.uuid, op.lsid, op.txnNumber = ts, int32(i), c.uuid, t.lsid, t.number
			d.log(op)
		}
	}
	t.ops = nil
	d.release(t)
}

// lock locks keys for a transaction. No other transaction may have locked them. The caller holds mu.
func (d *Data) lock(t *transaction, keys ...lockKey) {
	for _, k := range keys {
		if d.locks[k] == nil {
			d.locks[k] = t
			t.locks = append(t.locks, k)
		}
	}
}

// lockedIn reports whether a transaction has locked something in a collection, or in a database if coll
// is empty. The caller holds mu.
func (d *Data) lockedIn(db, coll string) bool {
	for k := range d.locks {
		if k.ns == db+"."+coll || coll == "" && strings.HasPrefix(k.ns, db+".") {
			return true
		}
	}
	return false
}

// endTransaction is commitTransaction and abortTransaction.
func (d *Data) endTransaction(req *command.Request) (bson.D, error) {
	commit := req.Row.Name == "commitTransaction"
	if req.TxnNumber == nil || !req.InTransaction {
		if err := checkTxnNumber(req); err != nil {
			return nil, err
		}
		return nil, command.Errorf(command.CodeCommandFailed, "%s must be run within a transaction", req.Row.Name)
	}
	s := &scope{d: d, req: req}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.leave()
	t := s.txn
	d.mu.Lock()
	defer d.mu.Unlock()
	var failed *command.Error
	switch {
	case t.state == aborted:
		failed = t.gone()
	case t.state == committed && !commit:
		failed = t.over()
	case commit && t.state == running:
		d.commit(t)
	case t.state == running:
		d.abort(t)
	}
	var token bson.D
	if mongos(req) {
		token = d.recoveryToken(t.touched)
	}
	if failed != nil {
		failed.Extra = token
		return nil, failed
	}
	req.AfterOK = token
	return bson.D{}, nil
}

// recoveryToken is the field by which another mongos finds the outcome of a transaction: it names the
// shard, if the transaction has written.
func (d *Data) recoveryToken(touched bool) bson.D {
	token := bson.D{}
	if touched {
		token = bson.D{{Key: "recoveryShardId", Value: d.opts.ShardName}}
	}
	return bson.D{{Key: "recoveryToken", Value: token}}
}
