package commands

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// handler plans a command whose fields have been checked. The returned action is run only if no error was noted.
type handler func(s *call, a *args) action

type action func() (bson.D, error)

// A parser is the Parse of a row.
type parser = func(*Request) (func() (Response, error), error)

// early returns a parser that plans the command before fail points are evaluated.
func (d *Deployment) early(h handler) parser {
	return func(req *Request) (func() (Response, error), error) {
		s := d.newCall(req)
		do, err := s.plan(h)
		return func() (Response, error) { return s.respond(s.serve(do)) }, err
	}
}

// late returns a parser that plans the command after its session and transaction have been found.
func (d *Deployment) late(h handler) parser {
	return d.directly(func(s *call) (bson.D, error) {
		return s.serve(func() (bson.D, error) {
			do, err := s.plan(h)
			if err != nil {
				s.Unsent = !s.req.Row.Write // a mongos parses reads itself
				return nil, err
			}
			return do()
		})
	})
}

// directly returns a parser that checks the fields of the command, if a server does so early.
func (d *Deployment) directly(run func(*call) (bson.D, error)) parser {
	return func(req *Request) (func() (Response, error), error) {
		return func() (Response, error) {
			s := d.newCall(req)
			return s.respond(run(s))
		}, CheckEarly(req)
	}
}

// respond drops the fields of a command that has failed, unless they are replies of shards.
func (s *call) respond(fields bson.D, err error) (Response, error) {
	if err == nil || s.req.Row.Raw {
		s.out.Fields = fields
	}
	return s.out, err
}

// plan checks the fields of the command and plans it.
func (s *call) plan(h handler) (action, error) {
	if !ChecksEarly(s.req) {
		if err := CheckFields(s.req); err != nil {
			return nil, err
		}
	}
	name := s.req.Row.Name
	a := &args{of: name, doc: given(name, value.Must(s.req.Body)), First: new(fault.First)}
	do := h(s, a)
	return do, a.Err
}

// serve performs an action in the session of its command.
func (s *call) serve(do action) (bson.D, error) {
	s.Context = s.req.Context // a write that has started continues even if its client disconnects
	s.d.cursors.noteUse(s.req)
	if err := s.begin(); err != nil {
		if s.req.Row.Name == "getMore" && mongos(s.req) && !s.Unsent {
			return nil, s.d.cursors.fail(s, err)
		}
		return s.routed(nil, err)
	}
	defer s.End()
	if s.onConfigServer() {
		do = s.refusedByConfig
	}
	reply, err := do()
	s.out.TriedToWrite = s.Tried
	if s.InTransaction() {
		reply, err = s.inTransaction(reply, err)
	}
	return s.routed(reply, err)
}
