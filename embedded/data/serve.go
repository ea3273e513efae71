package data

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// handler parses a command. The returned action is run only if the arguments are valid.
type handler func(s *scope, a *args) action

type action func() (bson.D, error)

// parse returns the Parse of a row, which checks the arguments before fail points are evaluated.
func (d *Data) parse(h handler) func(*command.Request) (func() (bson.D, error), error) {
	return func(req *command.Request) (func() (bson.D, error), error) {
		doc, err := value.Decode(req.Body)
		if err != nil {
			return nil, command.Errorf(command.CodeInvalidBSON, "%v", err)
		}
		if err := tooNew(req, req.Row.Name, doc); err != nil {
			return nil, err
		}
		s := &scope{d: d, req: req, deadline: deadline(req), leave: func() {}}
		a := &args{of: req.Row.Name, doc: doc, FirstError: new(command.FirstError)}
		do := h(s, a)
		return func() (bson.D, error) { return s.serve(do) }, a.Err
	}
}

// serve returns the Run of a row. It checks the arguments after the session and the transaction.
func (d *Data) serve(h handler) func(*command.Request) (bson.D, error) {
	return run(d.parse(func(s *scope, a *args) action {
		return func() (bson.D, error) {
			do := h(s, a)
			if a.Err != nil {
				return nil, a.Err
			}
			return do()
		}
	}))
}

// run combines a Parse and the action that it returns.
func run(parse func(*command.Request) (func() (bson.D, error), error)) func(*command.Request) (bson.D, error) {
	return func(req *command.Request) (bson.D, error) {
		do, err := parse(req)
		if err != nil {
			return nil, err
		}
		return do()
	}
}

// serve performs an action in the session of its command.
func (s *scope) serve(do action) (bson.D, error) {
	s.d.noteUse(s.req)
	if err := s.begin(); err != nil {
		return routed(s.req, err)
	}
	defer s.leave()
	reply, err := do()
	if s.txn == nil {
		return reply, err
	}
	return s.inTransaction(reply, err)
}

// routed converts an error about the session of a write: a mongos reports it as the error of the first statement.
func routed(req *command.Request, err error) (bson.D, error) {
	e, ok := err.(*command.Error)
	if !ok || !mongos(req) || e.Code != command.CodeTransactionTooOld || req.InTransaction {
		return nil, err
	}
	switch req.Row.Name {
	case "insert", "update", "delete":
		return tally(req, []effect{{err: e}}), nil
	}
	return nil, err
}

// inTransaction completes a command of a transaction, which it aborts if the command has failed. If the transaction
// was aborted while the command ran, the command fails.
func (s *scope) inTransaction(reply bson.D, err error) (bson.D, error) {
	d := s.d
	_, failed := value.Field(reply, "writeErrors")
	wrote := false
	d.changing(func() {
		switch {
		case s.txn.state == aborted && err == nil:
			reply, err = nil, s.txn.abortedError()
		case failed || err != nil:
			d.abort(s.txn)
		}
		// Only a transaction that wrote has an outcome to recover from the shard.
		if err == nil && s.req.Row.Write {
			s.txn.wrote = true
		}
		wrote = s.txn.wrote
	})
	if !mongos(s.req) {
		return reply, err
	}
	e, ok := err.(*command.Error)
	switch {
	case !ok:
		s.req.AfterOK = append(s.req.AfterOK, d.recoveryToken(wrote)...)
	case e.Code == command.CodeWriteConflict:
		c := *e
		_, host, _ := strings.Cut(d.opts.ShardHost, "/")
		c.Message = fmt.Sprintf("Encountered error from %s during a transaction :: caused by :: %s", host, e.Message)
		return reply, &c
	}
	return reply, err
}

// onShard wraps the reply of a shard as a mongos does.
func (s *scope) onShard(reply bson.D, err error) (bson.D, error) {
	if !mongos(s.req) {
		return reply, err
	}
	host := s.d.opts.ShardHost
	if e, ok := err.(*command.Error); ok {
		code := bson.D{{Key: "code", Value: e.Code}, {Key: "codeName", Value: command.CodeName(e.Code)}}
		raw := slices.Concat(bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: e.Message}}, code, e.Extra)
		return append(bson.D{{Key: "raw", Value: bson.D{{Key: host, Value: raw}}}}, code...),
			&command.Error{Message: e.Message, Extra: e.Extra}
	}
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "raw", Value: bson.D{{Key: host, Value: append(reply, bson.E{Key: "ok", Value: 1.0})}}}}, nil
}
