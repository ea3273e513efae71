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

// transaction is a multi-document transaction. It reads a snapshot of all collections and writes to copies. Its writes
// take effect at the commit. The records it has written are locked: a write by another transaction is a conflict, a
// write outside of transactions waits.
type transaction struct {
	number int64
	state  txnState
	server string // address of the server that began it; another mongos cannot continue it
	wrote  bool   // there is an outcome to recover from the shard
	// collections are the snapshots by namespace, and the copies of those that it has written to.
	collections map[string]*collection
	created     []*collection
	ops         []entry
	locks       []lockKey
	lsid        bson.Raw
	expiry      *time.Timer // aborts it at the end of its lifetime; nil: unlimited
}

// lockKey identifies a record, an uncommitted unique key, or a namespace that is being created.
type lockKey struct {
	ns  string
	rid int64
	key string
}

var errWriteConflict = command.Errorf(command.CodeWriteConflict, "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.")

func mongos(req *command.Request) bool    { return req.Server.Role == command.Mongos }
func address(req *command.Request) string { return req.Server.Address }
func wire(req *command.Request) int       { return req.Server.Wire }

// start starts the transaction of a request. The caller holds mu.
func (d *Data) start(req *command.Request, s *session, n int64) (*transaction, error) {
	switch {
	case n < s.txnNumber:
		return nil, command.Errorf(command.CodeTransactionTooOld, "Cannot start transaction %d on session %s because a newer transaction %d has already started.", n, sessionText(s.key), s.txnNumber)
	case n == s.txnNumber && mongos(req):
		return nil, command.Errorf(command.CodeConflictingOperationInProgress, "txnNumber %d for session %s already started", n, sessionText(s.key))
	case n == s.txnNumber:
		return nil, command.Errorf(command.CodeConflictingOperationInProgress, "Only servers in a sharded cluster can start a new transaction at the active transaction number")
	case hasDocument(req, "writeConcern"):
		return nil, noWriteConcern()
	}
	d.advance(s, n)
	t := &transaction{number: n, server: address(req), lsid: req.LSID, collections: map[string]*collection{}}
	if req.TransactionLifetime > 0 {
		t.expiry = time.AfterFunc(req.TransactionLifetime, func() { d.changing(func() { d.abort(t) }) })
	}
	for _, collections := range d.databases {
		for _, c := range collections {
			view := *c
			view.docs = c.snapshot()
			view.shared, view.frozen = true, true
			t.collections[c.ns()] = &view
		}
	}
	s.txn = t
	return t, nil
}

// hasDocument reports whether a command has a field that is a document.
func hasDocument(req *command.Request, field string) bool {
	_, ok := req.Body.Lookup(field).DocumentOK()
	return ok
}

func noWriteConcern() error {
	return command.Errorf(command.CodeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
}

// join starts or continues the transaction of a request. The caller holds mu.
func (d *Data) join(req *command.Request, s *session, n int64) (*transaction, error) {
	if req.StartTransaction {
		return d.start(req, s, n)
	}
	name := req.Row.Name
	current := s.txn != nil && s.txnNumber == n
	switch here := current && (!mongos(req) || s.txn.server == address(req)); {
	case !here && mongos(req) && name == "commitTransaction":
		return d.recoverOutcome(req, s, n, current)
	case !here && mongos(req):
		return nil, noSuch("cannot continue txnId %d for session %s with txnId %d", s.txnNumber, sessionText(s.key), n)
	case !here && n < s.txnNumber:
		return nil, command.Errorf(command.CodeTransactionTooOld, "Transaction number %d is too old: session %s is at %d", n, sessionText(s.key), s.txnNumber)
	case !here:
		return nil, noSuch("Given transaction number %d does not match any in-progress transactions. The active transaction number is %d", n, s.txnNumber)
	case req.Row.EndsTransaction:
		return s.txn, nil
	case hasDocument(req, "writeConcern"):
		return nil, noWriteConcern()
	case hasDocument(req, "readConcern") && name != "getMore":
		return nil, command.Errorf(command.CodeInvalidOptions, "Only the first command in a transaction may specify a readConcern")
	case s.txn.state == committed:
		e := s.txn.committedError()
		if mongos(req) && name == "find" {
			e.Message = "Encountered non-retryable error during query :: caused by :: " + e.Message
		}
		return nil, e
	case s.txn.state == aborted:
		return nil, s.txn.abortedError()
	}
	return s.txn, nil
}

// recoverOutcome returns the transaction of a commitTransaction that was sent to another mongos. current reports
// whether n is the session's current transaction. The caller holds mu.
func (d *Data) recoverOutcome(req *command.Request, s *session, n int64, current bool) (*transaction, error) {
	switch {
	case !hasDocument(req, "recoveryToken"):
		return nil, command.Errorf(50940, "Cannot recover the transaction decision without a recoveryToken")
	case !current:
		return nil, noSuch("Transaction %d has been aborted.", n)
	case s.txn.state == running:
		d.abort(s.txn)
		return nil, s.txn.abortedError()
	}
	return s.txn, nil
}

func noSuch(format string, args ...any) *command.Error {
	return command.Errorf(command.CodeNoSuchTransaction, format, args...)
}

func (t *transaction) abortedError() *command.Error {
	return noSuch("Transaction %d has been aborted.", t.number)
}

func (t *transaction) committedError() *command.Error {
	return command.Errorf(command.CodeTransactionCommitted, "Transaction %d has been committed.", t.number)
}

// abort aborts a transaction if it is running. t may be nil. The caller holds mu.
func (d *Data) abort(t *transaction) {
	if t != nil && t.state == running {
		t.state = aborted
		d.release(t)
	}
}

func (d *Data) release(t *transaction) {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	for _, k := range t.locks {
		delete(d.locks, k)
	}
	t.locks, t.collections = nil, nil
	d.announce()
}

// commit applies the writes of a transaction. Because of its locks, the records are still those of the snapshot. The
// caller holds mu.
func (d *Data) commit(t *transaction) {
	t.state = committed
	for _, c := range t.created {
		d.addCollection(c)
		e := c.created()
		e.ts = d.tick()
		d.log(e)
	}
	var ts bson.Timestamp
	if len(t.ops) > 0 {
		ts = d.tick()
	}
	for i, op := range t.ops {
		c := d.collection(op.db, op.coll)
		if c == nil {
			continue // the collection has been renamed
		}
		c.swap(op.old, op.new) // has no effect in the end on a collection that the transaction has created
		op.ts, op.txnIndex, op.uuid, op.lsid, op.txnNumber = ts, int32(i), c.uuid, t.lsid, t.number
		d.log(op)
	}
	t.created, t.ops = nil, nil
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

// lockedIn reports whether a transaction has a lock in a collection or, if coll is empty, in a database. The caller
// holds mu.
func (d *Data) lockedIn(db, coll string) bool {
	for k := range d.locks {
		if k.ns == db+"."+coll || coll == "" && strings.HasPrefix(k.ns, db+".") {
			return true
		}
	}
	return false
}

// endTransaction implements commitTransaction and abortTransaction.
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
		failed = t.abortedError()
	case t.state == committed && !commit:
		failed = t.committedError()
	case t.state == committed: // a repeated commit
	case commit:
		d.commit(t)
	default:
		d.abort(t)
	}
	var token bson.D
	if mongos(req) {
		token = d.recoveryToken(t.wrote)
	}
	if failed != nil {
		failed.Extra = token
		return nil, failed
	}
	req.AfterOK = token
	return bson.D{}, nil
}

// recoveryToken returns the field with which another mongos recovers the outcome of a transaction. It contains the
// shard if the transaction has written.
func (d *Data) recoveryToken(wrote bool) bson.D {
	token := bson.D{}
	if wrote {
		token = bson.D{{Key: "recoveryShardId", Value: d.opts.ShardName}}
	}
	return bson.D{{Key: "recoveryToken", Value: token}}
}
