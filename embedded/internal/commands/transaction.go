package commands

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// begin finds the session of the command, and its transaction or retryable write.
func (s *call) begin() error {
	req := s.req
	if req.TxnNumber == nil {
		return nil
	}
	refused := fault.First{Err: req.Refused}
	refused.Refuse(mongos(req) && !req.Row.EndsTransaction && req.HasDocument("writeConcern"), fault.InvalidOptions,
		"writeConcern is not allowed within a multi-statement transaction")
	refused.Refuse(mongos(req) && !req.StartTransaction && req.Row.Name != "getMore" &&
		req.Row.Name != "commitTransaction" && req.HasDocument("readConcern"), fault.InvalidOptions,
		"Only the first command in a transaction may specify a readConcern")
	token, noToken := req.Body.LookupErr("recoveryToken")
	return s.Begin(store.Claim{LSID: req.LSID, Number: *req.TxnNumber, Transaction: req.InTransaction,
		Start: req.StartTransaction, Commits: req.Row.Name == "commitTransaction",
		Aborts: req.Row.Name == "abortTransaction", Lifetime: req.TransactionLifetime, Refused: refused.Err, Name: req.Name,
		API: req.API, Has: s.has, Mongos: mongos(req), Server: address(req), Shard: s.d.opts.ShardName,
		Recovers: noToken == nil && token.Type == bson.TypeEmbeddedDocument,
		Recovery: value.TextAt(req.Body, "recoveryToken", "recoveryShardId")})
}

// HasDocument reports whether the command has a field that is a document with fields.
func (r *Request) HasDocument(field string) bool {
	return len(value.DocAt(r.Body, field)) > 5
}

// routed converts an error of the shard as a mongos does. The error of a write becomes the error of its statements,
// unless the transaction can be repeated.
func (s *call) routed(reply bson.D, err error) (bson.D, error) {
	req := s.req
	e, ok := err.(*fault.Error)
	if !ok || !mongos(req) || s.Unsent || e.Code == fault.NotImplemented {
		return reply, err
	}
	transient := req.InTransaction && (fault.Transient.Has(e.Code) || fault.Retriable.Has(e.Code))
	switch {
	case req.Row.Name == "find":
		err = fault.Within("Encountered non-retryable error during query", e)
	case req.Row.Statements != "" && transient:
		err = fault.Within(fmt.Sprintf("Encountered error from %s during a transaction", s.host()), e)
	case req.Row.Statements != "":
		if req.InTransaction {
			s.out.AfterTimes = s.recoveryToken()
		}
		return tally(req, []effect{{err: e}}, nil, nil), nil
	}
	if req.InTransaction && (e.Code == fault.SnapshotTooOld || e.Code == fault.SnapshotUnavailable) {
		transaction, statement := s.Statement()
		err = fault.Within(fmt.Sprintf("Transaction %s was aborted on statement %d due to: a non-retryable snapshot error",
			transaction, statement), err)
	}
	return reply, err
}

// inTransaction completes a command of a transaction. If the command has failed, it aborts the transaction. If that
// was aborted while the command ran, the command fails.
func (s *call) inTransaction(reply bson.D, err error) (bson.D, error) {
	_, failed := value.Field(reply, "writeErrors")
	s.Unsent = s.Unsent || err != nil && s.req.Row.Name == "getMore" // the mongos has the cursors
	if aborted := s.Complete(failed || err != nil, err == nil); aborted != nil {
		reply, err = nil, aborted
	}
	// A mongos passes on the replies to some commands even if they have failed.
	if mongos(s.req) && (err == nil || s.req.Row.Write && s.req.Row.Statements == "" && s.req.Row.Name != "create") {
		s.out.AfterTimes = s.recoveryToken()
	}
	return reply, err
}

// onConfigServer reports whether a mongos sends a write of a transaction to the config server, which has the database
// admin.
func (s *call) onConfigServer() bool {
	return s.InTransaction() && mongos(s.req) && s.has.ConfigConcern && s.req.DB == "admin" && s.req.Row.Statements != ""
}

// refusedByConfig is what happens to such a write at 5.0.0, according to recordings: the mongos adds a write concern.
func (s *call) refusedByConfig() (bson.D, error) {
	s.Fail("config")
	refused := fault.Errorf(fault.InvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	return tally(s.req, []effect{{err: refused}}, nil, nil), nil
}

// unfit returns an error if a stage cannot run in a transaction. A mongos finds out itself, except for $collStats.
func (s *call) unfit(stage string) error {
	end := "."
	switch {
	case stage == "$collStats" && s.has.TransactionErrors:
		return fault.Errorf(fault.OperationNotSupportedInTransaction,
			"Stage not supported inside of a multi-document transaction: $collStats")
	case stage == "$changeStream" && !s.has.TransactionErrors:
		return fault.Errorf(fault.OperationNotSupportedInTransaction, "$changeStream cannot be used in a transaction")
	case !slices.Contains([]string{"$collStats", "$changeStream", "$currentOp", "$listLocalSessions"}, stage):
		return nil
	case !s.has.TransactionErrors:
		end = ""
	}
	s.Unsent = true
	return fault.Errorf(fault.OperationNotSupportedInTransaction,
		"Operation not permitted in transaction :: caused by :: Aggregation stage %s cannot run within a multi-document transaction%s", stage, end)
}

// endTransaction implements commitTransaction and abortTransaction.
func endTransaction(s *call) (bson.D, error) {
	req := s.req
	switch {
	case req.InTransaction:
	case mongos(req) && s.has.TransactionErrors:
		return nil, fault.Errorf(fault.InvalidOptions, "%s can only be run within a session", req.Row.Name)
	default:
		return nil, fault.Errorf(fault.CommandFailed, "%s must be run within a transaction", req.Row.Name)
	}
	_, wrong := s.plan(func(*call, *args) action { return nil })
	if wrong != nil && !mongos(req) {
		return nil, wrong
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.End()
	if wrong != nil { // a mongos aborts the transaction, too
		s.Abandon()
		return nil, wrong
	}
	if _, err := req.Body.LookupErr("commitTimestamp"); err == nil && !mongos(req) {
		s.Abandon()
		return nil, fault.Errorf(fault.InvalidOptions,
			"commitTransaction cannot provide commitTimestamp to unprepared transaction.")
	}
	err := s.Finish()
	s.out.TriedToWrite = err == nil && req.Row.Name == "commitTransaction"
	if mongos(req) && (err == nil || !s.Unsent) {
		s.out.AfterTimes = s.recoveryToken()
	}
	return nil, err
}

// recoveryToken returns the field with which another mongos recovers the outcome of a transaction. It contains the
// shard if the transaction has written.
func (s *call) recoveryToken() bson.D {
	token := bson.D{}
	if s.Recoverable() {
		token = value.Doc("recoveryShardId", s.d.opts.ShardName)
	}
	return value.Doc("recoveryToken", token)
}
