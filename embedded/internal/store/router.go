package store

import (
	"cmp"
	"fmt"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// router is the state on a mongos of the transaction of a session. The mongos passes the transaction on to the shard.
type router struct {
	number    int64
	api       string
	statement int
	recovers  bool   // its first command was a commit: another mongos has run the transaction
	shard     string // the shard that commands were sent to; "" if none was sent
	answered  bool   // the shard has answered a command without an error
	wrote     bool   // the shard has reported that there is an outcome to recover
	failed    string // another participant whose statement was unsuccessful
	ended     bool   // a commit has begun: answers are ignored
}

// route begins or continues the transaction of a session on a mongos. The mongos itself returns its errors.
func (known *session) route(c Claim) (*router, error) {
	r := known.routers[c.Server]
	if r == nil {
		r = &router{number: -1}
		known.routers[c.Server] = r
	}
	switch n := c.Number; {
	case n < r.number:
		return nil, fault.Errorf(fault.TransactionTooOld, "txnNumber %d is less than last txnNumber %d seen in session %s", n,
			r.number, SessionText(known.key))
	case n == r.number && c.Start:
		return nil, fault.Errorf(fault.ConflictingOperationInProgress, "txnNumber %d for session %s already started", n,
			SessionText(known.key))
	case n == r.number && c.API != r.api:
		return nil, c.mismatch(r.api)
	case n == r.number && c.Refused == nil:
		r.statement++
	case n == r.number:
	case c.Start, c.Commits:
		*r = router{number: n, api: c.API, recovers: c.Commits}
	default:
		return nil, noSuch("cannot continue txnId %d for session %s with txnId %d", r.number, SessionText(known.key), n)
	}
	return r, c.Refused
}

// end decides what a mongos does with a commit or an abort: it sends it to the shard, or answers itself.
func (r *router) end(c Claim, key string) (send bool, err error) {
	switch {
	case !c.Commits && r.shard == "":
		return false, noSuch("no known command has been sent by this router for this transaction")
	case !c.Commits && r.shard != c.Shard:
		return false, fault.Errorf(fault.ShardNotFound, "Could not find shard %s", r.shard)
	case !c.Commits:
		return true, nil
	case r.recovers:
		return r.recover(c)
	case r.shard == "" && r.failed == "":
		return false, nil
	case r.failed != "" || !r.answered:
		return false, noSuch("%s Failed to commit transaction because a previous statement on the transaction participant %s was unsuccessful.", r.text(key), cmp.Or(r.failed, r.shard))
	}
	r.ended = true
	return true, nil
}

// recover decides about a commit of a transaction that another mongos has run.
func (r *router) recover(c Claim) (send bool, err error) {
	r.ended = true
	switch {
	case !c.Recovers:
		return false, fault.Errorf(50940, "Cannot recover the transaction decision without a recoveryToken")
	case c.Recovery == "":
		return false, noSuch("Recovery token is empty, meaning the transaction only performed reads and can be safely retried")
	}
	if r.shard = c.Recovery; r.shard != c.Shard {
		return false, fault.Errorf(fault.ShardNotFound, "Shard %s not found", r.shard)
	}
	return true, nil
}

// text names the transaction in messages.
func (r *router) text(key string) string {
	return fmt.Sprintf("%s:%d", value.UUIDText([]byte(key)), r.number)
}

// note records what the shard reports about a transaction in its reply to a command.
func (r *router) note(t *transaction) {
	if !r.ended {
		r.answered = true
		r.wrote = r.wrote || t.state != running || len(t.ops)+len(t.created) > 0
	}
}

// outcome returns the transaction whose commit a mongos recovers. If it is still open, it is aborted.
func (s *Store) outcome(c Claim, known *session) (*transaction, error) {
	if known.txn == nil || known.number != c.Number {
		return nil, noSuch("Transaction %d has been aborted.", c.Number)
	}
	s.abort(known.txn)
	return known.txn, nil
}
