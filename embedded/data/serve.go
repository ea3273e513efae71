package data

import (
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// handler parses a command, and gives what the command does if its arguments are well.
type handler func(s *scope, a *args) action

// action does what a command asks for.
type action func() (bson.D, error)

// parse makes the Parse of a row: the arguments are checked before any fail point strikes.
func (d *Data) parse(h handler) func(*command.Request) (func() (bson.D, error), error) {
	return func(req *command.Request) (func() (bson.D, error), error) {
		doc, err := value.Decode(req.Body)
		if err != nil {
			return nil, command.Errorf(command.CodeInvalidBSON, "%v", err)
		}
		if err := tooNew(req, req.Row.Name, doc); err != nil {
			return nil, err
		}
		s, a := &scope{d: d, req: req, leave: func() {}}, &args{of: req.Row.Name, doc: doc}
		do := h(s, a)
		return func() (bson.D, error) { return s.serve(do) }, a.err
	}
}

// serve makes the Run of a row, whose arguments are checked after all else.
func (d *Data) serve(h handler) func(*command.Request) (bson.D, error) {
	return run(d.parse(func(s *scope, a *args) action {
		return func() (bson.D, error) {
			do := h(s, a)
			if a.err != nil {
				return nil, a.err
			}
			return do()
		}
	}))
}

// run parses and answers.
func run(parse func(*command.Request) (func() (bson.D, error), error)) func(*command.Request) (bson.D, error) {
	return func(req *command.Request) (bson.D, error) {
		do, err := parse(req)
		if err != nil {
			return nil, err
		}
		return do()
	}
}

// serve does an action in the session of its command, and ends the transaction of a command that failed.
func (s *scope) serve(do action) (bson.D, error) {
	s.d.seen.note(s.req, time.Now())
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

// routed is how a mongos reports what its shard said about the session of a
// write: as the error of the first statement.
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

// inTransaction finishes a command of a transaction. If someone else has
// aborted the transaction while it ran, nothing that it found is true.
func (s *scope) inTransaction(reply bson.D, err error) (bson.D, error) {
	d := s.d
	_, failed := value.Field(reply, "writeErrors")
	touched := false
	d.changing(func() {
		switch {
		case s.txn.state == aborted && err == nil:
			reply, err = nil, s.txn.gone()
		case s.txn.state == running && (failed || err != nil):
			d.abort(s.txn)
		}
		// The shard has to recover an outcome only where something was written.
		if err == nil && s.req.Row.Write {
			s.txn.touched = true
		}
		touched = s.txn.touched
	})
	if !mongos(s.req) {
		return reply, err
	}
	if e, ok := err.(*command.Error); ok {
		if e.Code == command.CodeWriteConflict {
			c := *e
			_, host, _ := strings.Cut(d.opts.ShardHost, "/")
			c.Message = fmt.Sprintf("Encountered error from %s during a transaction :: caused by :: %s", host, e.Message)
			return reply, &c
		}
		return reply, err
	}
	s.req.AfterOK = append(s.req.AfterOK, d.recoveryToken(touched)...)
	return reply, err
}

// onShard wraps what a shard answered as a mongos passes it on.
func (s *scope) onShard(reply bson.D, err error) (bson.D, error) {
	if !mongos(s.req) {
		return reply, err
	}
	host := s.d.opts.ShardHost
	if e, ok := err.(*command.Error); ok {
		raw := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: e.Message}, {Key: "code", Value: e.Code}, {Key: "codeName", Value: command.CodeName(e.Code)}}
		raw = append(raw, e.Extra...)
		return bson.D{
			{Key: "raw", Value: bson.D{{Key: host, Value: raw}}},
			{Key: "code", Value: e.Code}, {Key: "codeName", Value: command.CodeName(e.Code)},
		}, &command.Error{Message: e.Message, Extra: e.Extra}
	}
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "raw", Value: bson.D{{Key: host, Value: append(reply, bson.E{Key: "ok", Value: 1.0})}}}}, nil
}
