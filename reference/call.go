package reference

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// row is an operation that the engine serves. Arguments that are not listed
// are refused.
type row struct {
	kind operations.Kind
	name string
	args []string
	run  func(*call) (any, *result.Error)
}

// rows is the operation table, by families.
func rows() []row {
	return slices.Concat(findRows(), aggregateRows(), countRows(), listRows(), commandRows(), cursorRows(),
		streamRows(), writeRows(), bulkRows(), modifyRows(), schemaRows(), sessionRows(), bucketRows(), clientRows(), metadataRows(), clientBulkRows())
}

func (r row) key() enginekit.Key { return enginekit.Key{Kind: r.kind, Name: r.name} }

// Arguments lists the arguments of the format's table that an operation is
// served with; false if the engine does not serve the operation.
func Arguments(kind operations.Kind, name string) ([]string, bool) {
	k := enginekit.Key{Kind: kind, Name: name}
	r, found := enginekit.Index(rows(), row.key)[k]
	if !found {
		return nil, false
	}
	return enginekit.Taken(k, func(a string) bool { return slices.Contains(r.args, a) }), true
}

// call is one operation under way.
type call struct {
	enginekit.Arguments
	ctx    context.Context
	base   context.Context // without the operation's deadline
	test   *test
	op     engine.Operation
	entity any
	kind   operations.Kind
	trace  trace

	client  *client
	scope   scope
	db      string
	coll    string
	timeout bool // timeoutMS governs the operation
	limit   *time.Duration
	session *clientSession // given or implicit
	kept    bool           // the implicit session belongs to a cursor now
}

// Do performs an operation.
func (t *test) Do(ctx context.Context, op engine.Operation) (out result.Outcome) {
	e, err := t.Entities.Get(op.Object)
	if err != nil {
		return result.Outcome{Err: argument(err.Error())}
	}
	kind := kindOf(e)
	r, ok := t.driver.table[enginekit.Key{Kind: kind, Name: op.Name}]
	if !ok {
		return result.Outcome{Err: unsupported(fmt.Sprintf("operation %s.%s", kind, op.Name))}
	}
	c := &call{test: t, op: op, Arguments: enginekit.NewArguments(op.Arguments), entity: e, kind: kind}
	switch other, err := c.Others(func(a string) bool { return slices.Contains(r.args, a) }); {
	case err != nil:
		return result.Outcome{Err: argument("arguments: " + err.Error())}
	case other != "":
		return result.Outcome{Err: unsupported(fmt.Sprintf("argument %s of %s.%s", other, r.kind, r.name))}
	}
	c.resolve()
	cancel, failed := c.begin(ctx)
	defer cancel()
	if failed != nil {
		return result.Outcome{Err: failed}
	}
	value, failure := r.run(c)
	if c.session != nil && c.session.implicit && !c.kept {
		c.session.end()
	}
	out = result.Outcome{Err: failure, Server: c.trace.server, ServiceID: c.trace.service, Decisions: c.trace.decisions}
	if failure == nil || value != nil {
		v, err := enginekit.ValueOf(value)
		if err != nil {
			return result.Outcome{Err: argument("result cannot be written: " + err.Error())}
		}
		out.Value = v
	}
	return out
}

// resolve finds the client and the namespace of the operation's entity.
func (c *call) resolve() {
	switch e := c.entity.(type) {
	case *client:
		c.client, c.scope, c.db = e, e.scope(), "admin"
	case *database:
		c.client, c.scope, c.db = e.client, e.options, e.name
	case *collection:
		c.client, c.scope, c.db, c.coll = e.db.client, e.options, e.db.name, e.name
	case *clientSession:
		c.client, c.scope, c.db = e.client, e.client.scope(), "admin"
		c.scope.timeout = e.timeoutMS()
	case *bucket:
		c.client, c.scope, c.db = e.db.client, e.options, e.db.name
	case iterator:
		c.client = e.owner()
	}
}

// begin finds the session and sets the deadline.
func (c *call) begin(ctx context.Context) (context.CancelFunc, *result.Error) {
	c.ctx, c.base = ctx, ctx
	if c.Has("session") {
		s, err := enginekit.Named[*clientSession](&c.test.Entities, c.Given, "session")
		if err != nil {
			return func() {}, argument(err.Error())
		}
		if s.client != c.client {
			return func() {}, argument("the session belongs to another client")
		}
		if s.ended {
			return func() {}, argument("the session has ended")
		}
		c.session = s
	} else if c.kind != operations.Session && c.kind != operations.Cursor {
		c.session = c.client.newSession(true)
	}
	if c.session != nil && c.session.inTransaction() { // (Transactions, "readConcern" and "writeConcern")
		for name, word := range map[string]string{"readConcern": "read", "writeConcern": "write"} {
			if c.Has(name) {
				return func() {}, argument("Cannot set " + word + " concern after starting a transaction")
			}
		}
	}
	limit := c.scope.timeout
	if c.session != nil && c.session.inTransaction() && c.session.options.timeout != nil {
		limit = c.session.options.timeout
	}
	if c.Has("timeoutMS") {
		var err error
		if limit, err = timeoutOf(c.Given.Lookup("timeoutMS")); err != nil {
			return func() {}, argument(err.Error())
		}
		if c.session != nil && c.session.inTransaction() && c.session.options.timeout != nil {
			return func() {}, argument("timeoutMS cannot be overridden in a transaction that has one")
		}
	}
	c.limit = limit
	s := c.session
	if c.kind == operations.Session {
		s = c.entity.(*clientSession)
	}
	if s != nil && !s.deadline.IsZero() && s.inTransaction() {
		if c.Has("timeoutMS") {
			return func() {}, argument("timeoutMS cannot be overridden in the callback of withTransaction")
		}
		c.timeout = true
		var cancel context.CancelFunc
		c.ctx, cancel = c.client.driver.options.until(ctx, s.deadline)
		return cancel, nil
	}
	return c.deadline(), nil
}

// deadline starts the operation's time again from now.
func (c *call) deadline() context.CancelFunc {
	c.timeout = c.limit != nil
	if c.limit == nil || *c.limit == 0 {
		return func() {}
	}
	ctx, cancel := c.client.driver.options.within(c.ctx, *c.limit)
	c.ctx = ctx
	return cancel
}

// document gives a document argument, an empty one if it is absent.
func (c *call) document(name string) bson.RawValue {
	if v := c.Arg(name); v.Type != 0 {
		return v
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: []byte{5, 0, 0, 0, 0}}
}

// documents reads an array of documents.
func (c *call) documents(name string) ([]bson.Raw, *result.Error) {
	array, ok := c.Arg(name).ArrayOK()
	if !ok {
		return nil, argument(name + " is no array")
	}
	values, err := array.Values()
	if err != nil {
		return nil, argument(name + ": " + err.Error())
	}
	out := make([]bson.Raw, len(values))
	for i, v := range values {
		if out[i], ok = v.DocumentOK(); !ok {
			return nil, argument(fmt.Sprintf("%s[%d] is no document", name, i))
		}
	}
	return out, nil
}

// copyArgs appends the arguments that are there to a command, under their own
// names. maxTimeMS is left out under timeoutMS, which replaces it.
func (c *call) copyArgs(to bson.D, names ...string) bson.D {
	for _, n := range names {
		if n == "maxTimeMS" && c.timeout {
			continue
		}
		if v := c.Arg(n); v.Type != 0 {
			to = append(to, bson.E{Key: n, Value: v})
		}
	}
	return to
}

// read makes a command that reads, with what it inherits.
func (c *call) read(name string, build func(target) (bson.D, error)) *command {
	return &command{
		name: name, db: c.db, op: retry.Lookup(name), build: build,
		preference: c.scope.preference, readConcern: c.scope.readConcern, takesReadConcern: true,
		session: c.session, timeout: c.timeout, unlimited: c.unlimited(),
	}
}

// unlimited tells that timeoutMS is 0.
func (c *call) unlimited() bool { return c.limit != nil && *c.limit == 0 }

// writing makes a command that writes.
func (c *call) writing(name, operation string, build func(target) (bson.D, error)) *command {
	concern := c.scope.writeConcern
	if c.timeout { // which replaces wtimeout
		concern = withoutTimeout(concern)
	}
	return &command{
		name: name, db: c.db, op: retry.Lookup(operation), build: build, write: true,
		writeConcern: concern, session: c.session, timeout: c.timeout, unlimited: c.unlimited(),
	}
}

// fixed is a command that is the same for every server.
func fixed(d bson.D) func(target) (bson.D, error) {
	return func(target) (bson.D, error) { return d, nil }
}

// do executes a command.
func (c *call) do(cmd *command) (reply, *result.Error) {
	return c.client.execute(c.ctx, cmd, &c.trace)
}

// run executes a command with the options that are given as arguments.
func (c *call) run(cmd *command) (reply, *result.Error) {
	if err := c.override(cmd); err != nil {
		return reply{}, err
	}
	return c.do(cmd)
}

// documentsOf executes a command whose reply is a cursor, and reads all of it.
func (c *call) documentsOf(cmd *command, o cursorOptions) ([]bson.Raw, *result.Error) {
	cmd.pin = true
	r, err := c.run(cmd)
	if err := raised(r, err); err != nil {
		return nil, err
	}
	return c.iterate(r, o)
}

// raised is the error of a command: of its execution, or of the writes that its
// reply reports.
func raised(r reply, err *result.Error) *result.Error {
	if err == nil && r.write != nil {
		return r.write.err
	}
	return err
}

// override applies read options that are given as arguments.
func (c *call) override(cmd *command) *result.Error {
	var err error
	if c.Has("readPreference") {
		if cmd.preference, err = preferenceOf(c.Arg("readPreference")); err != nil {
			return argument(err.Error())
		}
		cmd.explicit = true
	}
	if c.Has("readConcern") {
		if cmd.readConcern, err = readConcernOf(c.Arg("readConcern")); err != nil {
			return argument(err.Error())
		}
	}
	if c.Has("writeConcern") {
		if cmd.writeConcern, err = writeConcernOf(c.Arg("writeConcern")); err != nil {
			return argument(err.Error())
		}
	}
	return nil
}

// common are arguments that every operation with a command takes.
func common(names ...string) []string { return append(names, "session", "timeoutMS") }
