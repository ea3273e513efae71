package reference

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
)

// row is a supported operation.
type row struct {
	kind  entities.Kind
	name  string
	lacks string                           // unsupported arguments of the format
	run   func(*call) (any, *result.Error) // the result is ignored if there is an error
}

func rows() []row {
	return slices.Concat(readRows(), cursorRows(), writeRows(), schemaRows(), sessionRows(), bucketRows(), clientRows())
}

// noResult returns a row for an operation without a result.
func noResult(kind entities.Kind, name, lacks string, run func(*call) *result.Error) row {
	return row{kind, name, lacks, func(c *call) (any, *result.Error) { return enginekit.Nothing{}, run(c) }}
}

// Key implements enginekit.Row.
func (r row) Key() enginekit.Key { return enginekit.Key{Kind: r.kind, Name: r.name} }

// Accepts implements enginekit.Row. The runner's internal operations accept any argument.
func (r row) Accepts(name string) bool {
	known, found := operations.Lookup(r.kind, r.name)
	_, has := known.Argument(name)
	return !found || has && !slices.Contains(strings.Fields(r.lacks), name)
}

// call is one operation in progress.
type call struct {
	enginekit.Call[row]
	ctx   context.Context
	base  context.Context // without the operation's deadline
	trace trace

	namespace
	timeout bool // timeoutMS governs the operation
	limit   *time.Duration
	session *clientSession // given or implicit
	kept    bool           // a cursor owns the implicit session
	cursor  cursorOptions  // of an operation with cursorRow
}

// Do performs an operation.
func (t *test) Do(ctx context.Context, op engine.Operation) (out result.Outcome) {
	request, failed := t.driver.table.Call(&t.Test, op)
	if failed != nil {
		return result.Outcome{Err: failed}
	}
	c := &call{Call: request, ctx: ctx, base: ctx, namespace: request.Entity.(entity).ns()}
	failed = c.prepare()
	c.startSpan()
	if failed != nil {
		c.trace.span.end(failed)
		return result.Outcome{Err: failed}
	}
	defer c.deadline()()
	value, failure := c.Row.run(c)
	c.trace.span.end(failure)
	if c.session != nil && c.session.implicit && !c.kept {
		c.session.end()
	}
	out = result.Outcome{Err: failure, Server: c.trace.server, ServiceID: c.trace.service, Decisions: c.trace.decisions}
	if failure != nil {
		return out
	}
	var err error
	if out.Value, err = enginekit.ValueOf(value); err != nil {
		return result.Outcome{Err: argument("the result cannot be encoded: " + err.Error())}
	}
	return out
}

// prepare sets the session and the timeout.
func (c *call) prepare() *result.Error {
	c.limit = c.scope.timeout
	switch {
	case c.Has("session"):
		named, err := c.Session()
		if err != nil {
			return err
		}
		c.session = named.(*clientSession)
	case c.Kind != entities.Cursor && c.Kind != entities.Session:
		c.session = c.client.newSession(true)
	}
	switch s := c.inCallback(); {
	case s != nil && c.Has("timeoutMS"):
		return argument("timeoutMS cannot be overridden in the callback of withTransaction")
	case s != nil:
		c.limit = s.callback
	case c.Has("timeoutMS"):
		var err error
		if c.limit, err = timeoutOf(c.Given.Lookup("timeoutMS")); err != nil {
			return argument(err.Error())
		}
	}
	switch s := c.session; {
	case s == nil:
	case s.client != c.client:
		return argument("the session belongs to another client")
	case s.ended:
		return argument("the session has ended")
	case !s.inTransaction():
	case c.Has("readConcern"): // (Transactions, "readConcern" and "writeConcern")
		return argument("Cannot set read concern after starting a transaction")
	case c.Has("writeConcern"):
		return argument("Cannot set write concern after starting a transaction")
	}
	return nil
}

// inCallback returns the session if the operation is part of a callback of withTransaction with timeoutMS (Client Side
// Operations Timeout, "Convenient Transactions API").
func (c *call) inCallback() *clientSession {
	s := c.session
	if c.Kind == entities.Session {
		s = c.Entity.(*clientSession)
	}
	if s == nil || s.callback == nil {
		return nil
	}
	return s
}

// deadline starts the operation's timeout, or applies the deadline of withTransaction.
func (c *call) deadline() (cancel context.CancelFunc) {
	c.timeout = c.limit != nil
	if s := c.inCallback(); s != nil {
		c.ctx, cancel = c.client.driver.options.until(c.ctx, s.deadline)
	} else {
		c.ctx, cancel = c.client.driver.options.within(c.ctx, c.limit)
	}
	return cancel
}

// filter returns the argument filter, or an empty document.
func (c *call) filter() any {
	if c.Has("filter") {
		return c.Arg("filter")
	}
	return bson.D{}
}

// options appends all arguments to a command, except others, client-side arguments, and maxTimeMS under timeoutMS,
// which replaces it.
func (c *call) options(to bson.D, others ...string) bson.D {
	others = append(others, "session", "timeoutMS", "readConcern", "readPreference", "writeConcern", "batchSize",
		"cursorType",
		"maxAwaitTimeMS", "timeoutMode")
	given, _ := c.Given.Elements()
	for _, e := range given {
		if !slices.Contains(others, e.Key()) && !(e.Key() == "maxTimeMS" && c.timeout) {
			to = append(to, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return to
}

// copyArgs appends the named arguments to a document, if they are set.
func (c *call) copyArgs(to bson.D, names ...string) bson.D {
	for _, n := range names {
		if v := c.Arg(n); v.Type != 0 {
			to = append(to, bson.E{Key: n, Value: v})
		}
	}
	return to
}

// read returns a command that reads, with inherited options.
func (c *call) read(body bson.D) *command {
	return &command{
		body: body, db: c.db, op: retry.Lookup(body[0].Key),
		preference: c.scope.preference, readConcern: c.scope.readConcern, takesReadConcern: true,
		session: c.session, timeout: c.timeout,
	}
}

// writing returns a command that writes, with inherited options.
func (c *call) writing(operation string, body bson.D) *command {
	return &command{
		body: body, db: c.db, op: retry.Lookup(operation), write: true,
		writeConcern: c.scope.writeConcern, session: c.session, timeout: c.timeout,
	}
}

// run executes a command after override.
func (c *call) run(cmd *command) (reply, *result.Error) {
	if err := c.override(cmd); err != nil {
		return reply{}, err
	}
	return c.client.execute(c.ctx, cmd, &c.trace)
}

// open executes a command whose reply is a cursor.
func (c *call) open(cmd *command, o cursorOptions) (*cursor, *result.Error) {
	cmd.pin = true
	r, err := c.run(cmd)
	if err != nil {
		return nil, err
	}
	return c.openCursor(r, o)
}

// documentsOf executes a command whose reply is a cursor, and exhausts the cursor.
func (c *call) documentsOf(cmd *command, o cursorOptions) ([]bson.Raw, *result.Error) {
	k, err := c.open(cmd, o)
	switch {
	case err != nil && err.Code == codes.NamespaceNotFound && cmd.name() == "listIndexes":
		return []bson.Raw{}, nil // a missing collection has no indexes
	case err != nil:
		return nil, err
	}
	return k.all(c.base, &c.trace)
}

// override applies readPreference, readConcern and writeConcern arguments, and checks the write concern.
func (c *call) override(cmd *command) *result.Error {
	cmd.explicit = cmd.explicit || c.Has("readPreference")
	for name, read := range map[string]func(bson.RawValue) error{
		"readPreference": enginekit.SetErr(&cmd.preference, c.scope.preferenceOf),
		"readConcern":    enginekit.SetErr(&cmd.readConcern, readConcernOf),
		"writeConcern":   enginekit.SetErr(&cmd.writeConcern, writeConcernOf),
	} {
		if !c.Has(name) {
			continue
		}
		if err := read(c.Arg(name)); err != nil {
			return argument(err.Error())
		}
	}
	if err := consistent(cmd.writeConcern); err != nil {
		return err
	}
	if c.timeout { // timeoutMS replaces wtimeout
		cmd.writeConcern = withoutTimeout(cmd.writeConcern)
	}
	return nil
}
