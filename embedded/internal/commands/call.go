package commands

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// call is a command that is being served, with its work on the store.
type call struct {
	*store.Work
	d   *Deployment
	req *Request
	has *version.Features
	out Response

	noTimeout bool // the cursor has noCursorTimeout
	slept     bool // the scripts have run without the lock: sleep returns immediately
}

func (d *Deployment) newCall(req *Request) *call {
	s := &call{d: d, req: req, has: &req.Server.Has, Work: d.NewWork(req.Context, deadline(req), req.Server.Term)}
	s.BeforeCommit = s.failCommit
	s.Unvalidated = value.Truthy(value.FromRaw(req.Body.Lookup("bypassDocumentValidation")))
	return s
}

func mongos(req *Request) bool    { return req.Server.Role == Mongos }
func address(req *Request) string { return req.Server.Address }
func wire(req *Request) int       { return req.Server.Wire }

// failCommit evaluates the fail point onPrimaryTransactionalWrite for a retryable write that has changed something.
func (s *call) failCommit() error {
	f, hit := s.req.FailPoint(failpoint.OnPrimaryTransactionalWrite)
	if hit && f.CloseConnection {
		s.req.HangUp()
	}
	if !hit || !f.HasCode {
		return nil
	}
	return fault.Errorf(f.Code, "Failing write for %s:%d due to failpoint. The write must not be reflected.",
		store.SessionText(store.SessionKey(s.req.LSID)), s.TxnNumber())
}

// Expired returns an error if the time limit of a command that has one has passed, or as two fail points decide.
func Expired(req *Request, passed bool) error {
	if _, never := req.FailPoint(failpoint.MaxTimeNeverTimeOut); never {
		return nil
	}
	if _, always := req.FailPoint(failpoint.MaxTimeAlwaysTimeOut); always || passed {
		return store.TimedOut()
	}
	return nil
}

// deadline returns the time at which maxTimeMS expires, or zero without it. In a getMore it does not limit the work.
func deadline(req *Request) time.Time {
	ms, _ := value.Int64(value.FromRaw(req.Body.Lookup("maxTimeMS")))
	if ms <= 0 || req.Row.Name == "getMore" {
		return time.Time{}
	}
	return limit(req, time.Duration(ms)*time.Millisecond)
}

// limit returns the time after which work ends, or zero if a fail point lifts the limit.
func limit(req *Request, d time.Duration) time.Time {
	if _, never := req.FailPoint(failpoint.MaxTimeNeverTimeOut); never {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// options returns the context of the expressions of the command. What scans ends with the time limit, and a read also
// with its client.
func (s *call) options(let bson.D, c value.Collation) query.Options {
	stopped := s.Stopped
	if s.req.Row.Write {
		stopped = s.Late
	}
	return query.Options{Options: expression.Options{Let: let, Collation: c, Wire: wire(s.req), Stopped: stopped}}
}

// filters returns the context of the filters of the command, which may have scripts.
func (s *call) filters(let bson.D, c value.Collation) query.Options {
	o := s.options(let, c)
	o.Scripts = &query.Scripts{Disabled: s.d.opts.NoScripting, Sleep: s.sleep, Stopped: s.Stopped}
	return o
}

// runScripts runs the scripts of a write without the lock, because they may sleep. With the lock, sleep does nothing.
func (s *call) runScripts(w *write) error {
	if !w.filter.Scripted() {
		return nil
	}
	_, records := s.Records(w.db, w.coll)
	_, err := search(nil, records, w.filter, w.limit())
	s.slept = true
	return err
}

func (s *call) sleep(d time.Duration) error {
	if s.slept {
		return nil
	}
	return s.Sleep(d)
}

// change changes data and returns the reply of the command.
func (s *call) change(f func(*store.Tx) (bson.D, error)) (reply bson.D, err error) {
	err = s.Update(func(tx *store.Tx) error {
		reply, err = f(tx)
		return err
	})
	return reply, err
}

// opTime returns the fields that members of a replica set add to write replies. A statement of a transaction writes
// nothing before the commit, unless it fails.
func (s *call) opTime(failed bool) bson.D {
	if !s.d.opts.ReplicaSet || s.d.opts.Sharded || mongos(s.req) {
		return nil
	}
	now := s.d.Now()
	if s.InTransaction() && !failed {
		now = s.req.LastOp
	}
	var opTime any = now
	if !now.IsZero() {
		opTime = value.Doc("ts", now, "t", s.req.Server.Term)
	}
	return value.Doc("electionId", s.req.Server.ElectionID, "opTime", opTime)
}

// ShardFailure returns the reply of a mongos to a Raw command that failed on a shard.
func ShardFailure(host string, e *fault.Error) (bson.D, error) {
	code := value.Doc("code", e.Code, "codeName", fault.Name(e.Code))
	raw := slices.Concat(value.Doc("ok", 0.0, "errmsg", e.Message), code, e.Extra)
	return append(value.Doc("raw", value.Doc(host, raw)), code...), &fault.Error{Message: e.Message, Extra: e.Extra}
}

// onShard wraps the reply of a shard as a mongos does.
func (s *call) onShard(reply bson.D, err error) (bson.D, error) {
	if !mongos(s.req) {
		return reply, err
	}
	host := s.d.opts.ShardHost
	if e, ok := err.(*fault.Error); ok {
		return ShardFailure(host, e)
	}
	return value.Doc("raw", value.Doc(host, value.Append(reply, "ok", 1.0))), nil
}

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
		}, CheckFields(req, true)
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
	if err := CheckFields(s.req, false); err != nil {
		return nil, err
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
