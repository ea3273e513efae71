package data

import (
	"encoding/base64"
	"maps"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// session is the server-side state of a logical session.
type session struct {
	key       string
	txnNumber int64 // the highest so far; -1 initially

	statements map[int32]*statement // the retryable writes of txnNumber by statement id
	txn        *transaction         // the transaction of txnNumber; nil for a retryable write
	// turn is held by the running command with a txnNumber. A retry waits for it, even if the first attempt has lost
	// its connection.
	turn chan struct{}
	used time.Time // time of the last command with a txnNumber
}

// statement is the result of a write. For a retryable write it is recorded, to answer a retry.
type statement struct {
	n, modified int64
	upserted    any // value.Missing unless an upsert inserted
	// findAndModify is nil for other commands. pre and post are the document before and after it.
	findAndModify *modify
	pre, post     bson.Raw
}

// inserted reports whether an upsert inserted a document.
func (st *statement) inserted() bool { return st.upserted != any(value.Missing{}) }

// sessionKey returns the bytes of the UUID of a session.
func sessionKey(lsid bson.Raw) string {
	_, data, _ := lsid.Lookup("id").BinaryOK()
	return string(data)
}

func sessionKeys(lsids []bson.Raw) map[string]bool {
	keys := map[string]bool{}
	for _, l := range lsids {
		keys[sessionKey(l)] = true
	}
	return keys
}

// sessionText formats a session as in the server's messages.
func sessionText(key string) string {
	return value.UUIDText([]byte(key)) + " - " + base64.StdEncoding.EncodeToString(command.UserDigest("").Data)
}

// session returns an existing or new session. The caller holds mu.
func (d *Data) session(key string) *session {
	s := d.sessions[key]
	if s == nil {
		d.forgetIdle()
		s = &session{key: key, txnNumber: -1, turn: make(chan struct{}, 1)}
		d.sessions[key] = s
	}
	return s
}

// forgetIdle deletes sessions that have timed out, and others if there are still too many. The caller holds mu.
func (d *Data) forgetIdle() {
	if len(d.sessions) < maxSessions {
		return
	}
	maps.DeleteFunc(d.sessions, func(_ string, s *session) bool {
		busy := len(s.turn) > 0 || s.txn != nil && s.txn.state == running
		return !busy && (time.Since(s.used) > sessionTimeout || len(d.sessions) >= maxSessions/2)
	})
}

// endSessions closes the cursors and aborts the transactions of chosen sessions.
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
		d.abort(s.txn)
		if forget {
			delete(d.sessions, key)
		}
	}
}

// checkTxnNumber checks that a command with a txnNumber supports retryable writes or transactions.
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

// scope is the view of the data that a command reads and writes: that of the deployment or of a transaction.
type scope struct {
	d       *Data
	req     *command.Request
	txn     *transaction // nil outside of transactions
	session *session     // of a retryable write; else nil

	writes    bool      // something was written
	noTimeout bool      // the cursor has noCursorTimeout
	slept     bool      // the scripts have run without the lock: sleep returns immediately
	deadline  time.Time // of maxTimeMS; zero without it
	undoLog   []func()  // undoes the changes of the current attempt, the last one first
	kept      int       // the part of undoLog that is undone only if the attempt is blocked
	leave     func()    // releases the session's turn
}

// begin validates the session fields of the command and finds its session or transaction. The caller does not hold mu.
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

// checkOutSession waits for the turn of the request's session. If the session ends meanwhile, it waits for the turn of
// the session that replaces it.
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

// advance sets a new txnNumber and aborts the open transaction.
func (d *Data) advance(s *session, n int64) {
	d.abort(s.txn)
	s.txnNumber, s.txn, s.statements = n, nil, nil
}

const (
	sessionTimeout = 30 * time.Minute
	maxSessions    = 10000
)

// recentSessions are the sessions of recent commands, for $listLocalSessions.
type recentSessions struct {
	mu      sync.Mutex
	lastUse map[recentKey]time.Time
}

type recentKey struct{ server, session string }

func (s *recentSessions) note(req *command.Request, now time.Time) {
	if req.LSID == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lastUse) >= maxSessions {
		maps.DeleteFunc(s.lastUse, func(_ recentKey, t time.Time) bool {
			return now.Sub(t) > sessionTimeout || len(s.lastUse) >= maxSessions/2
		})
	}
	s.lastUse[recentKey{address(req), sessionKey(req.LSID)}] = now
}

func (s *recentSessions) forget(keys map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.lastUse, func(k recentKey, _ time.Time) bool { return keys[k.session] })
}

// list returns the output of $listLocalSessions on a server.
func (s *recentSessions) list(server string) []bson.D {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []bson.D
	for k, t := range s.lastUse {
		if k.server != server {
			continue
		}
		out = append(out, bson.D{
			{Key: "_id", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(k.session)}}, {Key: "uid", Value: command.UserDigest("")}}},
			{Key: "lastUse", Value: bson.NewDateTimeFromTime(t)},
		})
	}
	return out
}
