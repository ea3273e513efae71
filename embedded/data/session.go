package data

import (
	"encoding/base64"
	"maps"
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
	inserted    bool // an upsert has inserted a document
	upserted    any  // its _id
	// findAndModify is nil for other commands. pre and post are the document before and after it.
	findAndModify *modify
	pre, post     bson.Raw
}

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
	maps.DeleteFunc(d.recent, func(k recentKey, _ time.Time) bool { return forget && chosen(k.session) })
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

// recentKey identifies a session that has been used on a server.
type recentKey struct{ server, session string }

// noteUse records the time of a command in a session for $listLocalSessions.
func (d *Data) noteUse(req *command.Request) {
	if req.LSID == nil {
		return
	}
	d.cursorMu.Lock()
	defer d.cursorMu.Unlock()
	if len(d.recent) >= maxSessions {
		maps.DeleteFunc(d.recent, func(_ recentKey, used time.Time) bool {
			return time.Since(used) > sessionTimeout || len(d.recent) >= maxSessions/2
		})
	}
	d.recent[recentKey{address(req), sessionKey(req.LSID)}] = time.Now()
}

// localSessions returns the output of $listLocalSessions on a server.
func (d *Data) localSessions(server string) []bson.D {
	d.cursorMu.Lock()
	defer d.cursorMu.Unlock()
	var out []bson.D
	for k, used := range d.recent {
		if k.server == server {
			id := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(k.session)}}}
			id = append(id, bson.E{Key: "uid", Value: command.UserDigest("")})
			out = append(out, bson.D{{Key: "_id", Value: id}, {Key: "lastUse", Value: bson.NewDateTimeFromTime(used)}})
		}
	}
	return out
}
