package commands

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// handler parses a command. The returned action is run only if the arguments are valid.
type handler func(s *call, a *args) action

type action func() (bson.D, error)

// parse returns the Parse of a row, which checks the arguments before fail points are evaluated.
func (d *Deployment) parse(h handler) func(*Request) (func() (bson.D, error), error) {
	return func(req *Request) (func() (bson.D, error), error) {
		doc, err := value.Decode(req.Body)
		if err != nil {
			return nil, fault.Errorf(fault.InvalidBSON, "%v", err)
		}
		if err := tooNew(req, req.Row.Name, doc); err != nil {
			return nil, err
		}
		s := d.newCall(req)
		a := &args{of: req.Row.Name, doc: doc, First: new(fault.First)}
		do := h(s, a)
		return func() (bson.D, error) { return s.serve(do) }, a.Err
	}
}

// serve returns the Run of a row. It checks the arguments after the session and the transaction.
func (d *Deployment) serve(h handler) func(*Request) (bson.D, error) {
	return run(d.parse(func(s *call, a *args) action {
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
func run(parse func(*Request) (func() (bson.D, error), error)) func(*Request) (bson.D, error) {
	return func(req *Request) (bson.D, error) {
		do, err := parse(req)
		if err != nil {
			return nil, err
		}
		return do()
	}
}

// serve performs an action in the session of its command.
func (s *call) serve(do action) (bson.D, error) {
	s.Context = s.req.Context // a write that has started continues even if its client disconnects
	s.d.cursors.noteUse(s.req)
	if err := s.begin(); err != nil {
		return routed(s.req, err)
	}
	defer s.End()
	reply, err := do()
	if !s.InTransaction() {
		return reply, err
	}
	return s.inTransaction(reply, err)
}
