package data

import (
	"encoding/base64"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// session is what the deployment remembers of a client's session.
type session struct {
	key       string
	txnNumber int64 // the highest seen; -1 at first
	// statements are the records of the retryable writes of txnNumber.
	statements map[int32]*statement
	txn        *transaction // of txnNumber, nil if that is a retryable write
	// turn is held by the command with a number that runs: another one waits, as a
	// retry does for a command that goes on without its connection.
	turn chan struct{}
	used time.Time // when a command with a number came last
}

// statement is the record of a retryable write: what it did, so that a retry
// can be answered.
type statement struct {
	n, modified int64
	upserted    any // value.Missing unless an upsert inserted
	// findAndModify: how it asked, nil for other commands, and what it found.
	as        *modify
	pre, post bson.Raw
}

// inserted reports whether an upsert inserted a document.
func (st *statement) inserted() bool { return st.upserted != any(value.Missing{}) }

// sessionKey identifies a session by the bytes of its UUID.
func sessionKey(lsid bson.Raw) string {
	if _, data, ok := lsid.Lookup("id").BinaryOK(); ok {
		return string(data)
	}
	return ""
}

func sessionKeys(lsids []bson.Raw) map[string]bool {
	keys := map[string]bool{}
	for _, l := range lsids {
		keys[sessionKey(l)] = true
	}
	return keys
}

// sessionText is a session as messages name it.
func sessionText(key string) string {
	return value.UUIDText([]byte(key)) + " - " + base64.StdEncoding.EncodeToString(command.UserDigest("").Data)
}

// session finds or makes a session. The caller holds mu.
func (d *Data) session(key string) *session {
	s := d.sessions[key]
	if s == nil {
		d.forgetIdle()
		s = &session{key: key, txnNumber: -1, turn: make(chan struct{}, 1)}
		d.sessions[key] = s
	}
	return s
}

// forgetIdle makes room for a session, if there are many: first go those that have been idle for so
// long that the server would have ended them. The caller holds mu.
func (d *Data) forgetIdle() {
	if len(d.sessions) < maxSessions {
		return
	}
	now := time.Now()
	for key, s := range d.sessions {
		busy := len(s.turn) > 0 || s.txn != nil && s.txn.state == running
		if !busy && (now.Sub(s.used) > sessionTimeout || len(d.sessions) >= maxSessions/2) {
			delete(d.sessions, key)
		}
	}
}

// endSessions closes cursors and aborts transactions of the sessions chosen.
func (d *Data) endSessions(chosen func(key string) bool, forget bool) {
	d.cursorMu.Lock()
	defer d.cursorMu.Unlock()
	d.killCursors(func(c *cursor) bool { return c.session != "" && chosen(c.session) })
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.sessions {
		if !chosen(key) {
			continue
		}
		d.abortOpen(s)
		if forget {
			delete(d.sessions, key)
		}
	}
}

// checkTxnNumber refuses a txnNumber on commands that are neither retryable writes nor part of
// a transaction.
func checkTxnNumber(req *command.Request) error {
	row := req.Row
	switch {
	case req.TxnNumber == nil || !req.InTransaction && row.Retryable:
		return nil
	case !req.InTransaction:
		return command.Errorf(command.CodeNotARetryableWriteCommand, "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", row.Name)
	case row.Name == "count":
		return command.Errorf(command.CodeOperationNotSupportedInTransaction, "Cannot run 'count' in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.")
	case !row.Transactional:
		return command.Errorf(command.CodeOperationNotSupportedInTransaction, "Cannot run '%s' in a multi-document transaction.", req.Name)
	case req.DB == "config" || req.DB == "local" || req.DB == "admin" && !row.AdminOnly:
		return command.Errorf(command.CodeOperationNotSupportedInTransaction, "Cannot run command against the '%s' database in a transaction.", req.DB)
	}
	return nil
}

// scope is where a command reads and writes: the deployment's data, or the
// copy of a transaction.
type scope struct {
	d   *Data
	req *command.Request
	txn *transaction
	// session and statements for retryable writes.
	session  *session
	writes   bool      // something was written
	lasting  bool      // its cursor has noCursorTimeout
	slept    bool      // its scripts have slept before it took the lock
	deadline time.Time // the end of maxTimeMS for scripts; zero without it
	work     work
	leave    func() // lets the next command of the session run
}

// begin checks the session fields of the command, and finds its session or transaction. The caller
// does not hold mu.
func (s *scope) begin() (err error) {
	d, req := s.d, s.req
	if err := checkTxnNumber(req); err != nil || req.TxnNumber == nil {
		return err
	}
	sess, err := d.checkOutSession(req)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			<-sess.turn
		}
	}()
	s.leave = func() { <-sess.turn }
	d.mu.Lock()
	defer d.mu.Unlock()
	n := *req.TxnNumber
	switch {
	case req.InTransaction:
		d.expire()
		s.txn, err = d.join(req, sess, n)
		return err
	case n < sess.txnNumber:
		kind := "retryable write"
		if sess.txn != nil {
			kind = "transaction"
		}
		return command.Errorf(command.CodeTransactionTooOld, "Retryable write with txnNumber %d is prohibited on session %s because a newer %s with txnNumber %d has already started on this session.", n, sessionText(sess.key), kind, sess.txnNumber)
	case n > sess.txnNumber:
		d.advance(sess, n)
		sess.statements = map[int32]*statement{}
	case sess.txn != nil:
		return command.Errorf(command.CodeInvalidOptions, "Retryable write with txnNumber %d is prohibited on session %s because a transaction with the same txnNumber has already started on this session.", n, sessionText(sess.key))
	}
	s.session = sess
	return nil
}

// checkOutSession waits for the session's turn, unless the session ends meanwhile: then
// for that of the one that takes its place.
func (d *Data) checkOutSession(req *command.Request) (*session, error) {
	key := sessionKey(req.LSID)
	for {
		var s *session
		d.changing(func() {
			s = d.session(key)
			s.used = time.Now()
		})
		select {
		case s.turn <- struct{}{}:
		case <-req.Context.Done():
			return nil, interrupted()
		}
		same := false
		d.reading(func() { same = d.sessions[key] == s })
		if same {
			return s, nil
		}
		<-s.turn
	}
}

// advance moves a session to a new number and ends what it was doing.
func (d *Data) advance(s *session, n int64) {
	d.abortOpen(s)
	s.txnNumber, s.txn, s.statements = n, nil, nil
}
