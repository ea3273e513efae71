package commands

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// checkTxnNumber checks that a command with a txnNumber supports retryable writes or transactions.
func checkTxnNumber(req *Request) error {
	row := req.Row
	switch {
	case req.TxnNumber == nil || !req.InTransaction && row.Retryable:
		return nil
	case !req.InTransaction:
		return fault.Errorf(fault.NotARetryableWriteCommand, "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", row.Name)
	case row.Name == "count":
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "Cannot run 'count' in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.")
	case !row.Transactional:
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "Cannot run '%s' in a multi-document transaction.", req.Name)
	case req.DB == "config" || req.DB == "local" || req.DB == "admin" && !row.AdminOnly && wire(req) < wire50:
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "Cannot run command against the '%s' database in a transaction.", req.DB)
	}
	return nil
}

// begin finds the session of the command, and its transaction or retryable write.
func (s *call) begin() error {
	req := s.req
	if err := checkTxnNumber(req); err != nil || req.TxnNumber == nil {
		return err
	}
	var refused fault.First
	refused.Refuse(mongos(req) && hasDocument(req, "writeConcern"), fault.InvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	refused.Refuse(mongos(req) && !req.StartTransaction && req.Row.Name != "getMore" && hasDocument(req, "readConcern"), fault.InvalidOptions,
		"Only the first command in a transaction may specify a readConcern")
	return s.Begin(store.Claim{LSID: req.LSID, Number: *req.TxnNumber, Transaction: req.InTransaction, Start: req.StartTransaction,
		Commits: req.Row.Name == "commitTransaction", Aborts: req.Row.Name == "abortTransaction", Lifetime: req.TransactionLifetime,
		Recovers: hasDocument(req, "recoveryToken"), Refused: refused.Err, Name: req.Name, API: req.API, Server: address(req), Mongos: mongos(req)})
}

// hasDocument reports whether a command has a field that is a document with fields.
func hasDocument(req *Request, field string) bool {
	doc, _ := req.Body.Lookup(field).DocumentOK()
	return len(doc) > 5
}

// routed converts an error about the session as a mongos does, which reports that of a write as the error of the first
// statement.
func (s *call) routed(err error) (bson.D, error) {
	req := s.req
	e, ok := err.(*fault.Error)
	if !ok || !mongos(req) {
		return nil, err
	}
	switch req.Row.Name {
	case "insert", "update", "delete":
		if e.Code == fault.TransactionCommitted {
			req.AfterOK = s.recoveryToken()
		}
		if e.Code == fault.TransactionCommitted || e.Code == fault.TransactionTooOld && !req.InTransaction {
			return tally(req, []effect{{err: e}}), nil
		}
	case "find":
		if e.Code == fault.TransactionCommitted {
			return nil, prefixed("Encountered non-retryable error during query", e)
		}
	}
	return nil, err
}

// prefixed returns an error with the place where a mongos encountered it.
func prefixed(where string, e *fault.Error) error {
	c := *e
	c.Message = where + " :: caused by :: " + e.Message
	return &c
}

// inTransaction completes a command of a transaction, which it aborts if the command has failed. If the transaction
// was aborted while the command ran, the command fails.
func (s *call) inTransaction(reply bson.D, err error) (bson.D, error) {
	_, failed := value.Field(reply, "writeErrors")
	if aborted := s.Complete(failed || err != nil, err == nil && s.req.Row.Write); aborted != nil {
		reply, err = nil, aborted
	}
	if !mongos(s.req) {
		return reply, err
	}
	e, ok := err.(*fault.Error)
	switch {
	case !ok:
		s.req.AfterOK = append(s.req.AfterOK, s.recoveryToken()...)
	case e.Code == fault.WriteConflict:
		_, host, _ := strings.Cut(s.d.opts.ShardHost, "/")
		return reply, prefixed(fmt.Sprintf("Encountered error from %s during a transaction", host), e)
	}
	return reply, err
}

// endTransaction implements commitTransaction and abortTransaction.
func (d *Deployment) endTransaction(req *Request) (bson.D, error) {
	if req.TxnNumber == nil || !req.InTransaction {
		if err := checkTxnNumber(req); err != nil {
			return nil, err
		}
		return nil, fault.Errorf(fault.CommandFailed, "%s must be run within a transaction", req.Row.Name)
	}
	s := d.newCall(req)
	if _, err := s.plan(func(*call, *args) action { return nil }); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.End()
	if _, err := req.Body.LookupErr("commitTimestamp"); err == nil {
		_ = s.Finish(false)
		return nil, fault.Errorf(fault.InvalidOptions, "commitTransaction cannot provide commitTimestamp to unprepared transaction.")
	}
	err := s.Finish(req.Row.Name == "commitTransaction")
	var token bson.D
	if mongos(req) {
		token = s.recoveryToken()
	}
	if failed, ok := err.(*fault.Error); ok {
		failed.Extra = token
		return nil, failed
	}
	req.AfterOK = token
	return bson.D{}, nil
}

// recoveryToken returns the field with which another mongos recovers the outcome of a transaction. It contains the
// shard if the transaction has written.
func (s *call) recoveryToken() bson.D {
	token := bson.D{}
	if s.Wrote() {
		token = bson.D{{Key: "recoveryShardId", Value: s.d.opts.ShardName}}
	}
	return bson.D{{Key: "recoveryToken", Value: token}}
}
