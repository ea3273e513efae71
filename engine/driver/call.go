package driver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// row is an operation that the driver has.
type row struct {
	kind operations.Kind
	name string
	// takes are the arguments that run reads itself, separated by blanks.
	takes string
	// options is the struct of the driver's options for the call; every
	// argument that it has a field for is taken. Nil: there are none.
	options reflect.Type
	// run gives the result, a Go value that can be written as BSON; nil is
	// null. A result beside an error is a partial one.
	run func(*call) (any, error)
}

// optionsFor names an options struct in a row.
func optionsFor[T any]() reflect.Type { return reflect.TypeFor[T]() }

// rows is the operation table, by families.
func rows() []row {
	return slices.Concat(clientRows(), databaseRows(), readRows(), writeRows(), modifyRows(), bulkRows(), indexRows(),
		searchIndexRows(), streamRows(), cursorRows(), sessionRows(), bucketRows())
}

func table() map[enginekit.Key]row {
	return enginekit.Index(rows(), func(r row) enginekit.Key { return enginekit.Key{Kind: r.kind, Name: r.name} })
}

// accepts tells that the row takes an argument. Session and timeoutMS go with
// the context, and are taken by every operation that sends a command.
func (r row) accepts(name string) bool {
	if slices.Contains(strings.Fields(r.takes), name) {
		return true
	}
	switch name {
	case "session":
		return slices.Contains([]operations.Kind{operations.Client, operations.Database, operations.Collection}, r.kind)
	case "timeoutMS":
		return !slices.Contains([]string{"close", "endSession", "getSnapshotTime", "startTransaction", "appendMetadata"}, r.name) &&
			!strings.HasPrefix(r.name, "$")
	}
	if r.options == nil {
		return false
	}
	f, found := fieldOf(r.options, name)
	return found && fillable(f.Type)
}

// Arguments lists the arguments of the format's table that an operation is
// served with; false if the driver does not have the operation.
func Arguments(kind operations.Kind, name string) ([]string, bool) {
	k := enginekit.Key{Kind: kind, Name: name}
	r, found := table()[k]
	if !found {
		return nil, false
	}
	return enginekit.Taken(k, r.accepts), true
}

// call is one operation under way.
type call struct {
	enginekit.Arguments
	ctx    context.Context
	test   *test
	op     engine.Operation
	row    row
	entity any
	client *client
	trace  trace
}

// Do performs an operation.
func (t *test) Do(ctx context.Context, op engine.Operation) result.Outcome {
	e, err := t.Entities.Get(op.Object)
	if err != nil {
		return result.Outcome{Err: argument("%s", err)}
	}
	kind := kindOf(e)
	r, ok := t.driver.table[enginekit.Key{Kind: kind, Name: op.Name}]
	if !ok {
		return result.Outcome{Err: unsupported(fmt.Sprintf("operation %s.%s", kind, op.Name))}
	}
	c := &call{test: t, op: op, Arguments: enginekit.NewArguments(op.Arguments), row: r, entity: e, client: clientOf(e)}
	end, err := c.begin(ctx)
	defer end()
	var value any
	if err == nil {
		value, err = r.run(c)
	}
	return c.outcome(value, err)
}

// begin checks the arguments and makes the context.
func (c *call) begin(ctx context.Context) (context.CancelFunc, error) {
	none := func() {}
	switch other, err := c.Others(c.row.accepts); {
	case err != nil:
		return none, argument("arguments: %v", err)
	case other != "":
		return none, unsupported(fmt.Sprintf("argument %s of %s.%s", other, c.row.kind, c.row.name))
	}
	// So that nothing is sent if an option cannot be had. (The driver ignores
	// errors of a collection's options.)
	if err := fill(new(options.CollectionOptions), c.row.name, c.concerns()); err != nil {
		return none, err
	}
	if c.row.options != nil {
		if err := fill(reflect.New(c.row.options).Interface(), c.row.name, c.rest()); err != nil {
			return none, err
		}
	}
	timeout, err := c.timeoutMS()
	if err != nil {
		return none, err
	}
	plain, stop := undated(ctx)
	timedOut, cancel := timed(c.trace.attach(plain), timeout)
	c.ctx = timedOut
	end := func() { cancel(); stop() }
	if c.Has("session") {
		s, err := enginekit.Named[*session](&c.test.Entities, c.Given, "session")
		if err != nil {
			return end, argument("%v", err)
		}
		c.ctx = mongo.NewSessionContext(c.ctx, s.Session)
	} else if mongo.SessionFromContext(c.ctx) != nil {
		// In a callback, an operation is part of the transaction only if it
		// says so.
		c.ctx = mongo.NewSessionContext(c.ctx, nil)
	}
	return end, nil
}

// timeoutMS reads the argument. The driver knows it as a context's deadline:
// that there is none cannot be said of one operation.
func (c *call) timeoutMS() (*time.Duration, error) {
	if !c.Has("timeoutMS") {
		return nil, nil
	}
	d, ok := milliseconds(c.Arg("timeoutMS"))
	switch {
	case !ok || d < 0:
		return nil, argument("timeoutMS is no number of milliseconds")
	case d > 0:
		return &d, nil
	case c.client.timeout != nil && *c.client.timeout == 0:
		return nil, nil
	}
	return nil, unsupported("timeoutMS 0 of one operation")
}

// outcome writes what came of the operation.
func (c *call) outcome(value any, err error) result.Outcome {
	var out result.Outcome
	out.Server, out.ServiceID = c.trace.last()
	if err != nil {
		out.Err = errorOf(err)
		_, own := c.ctxDeadline()
		out.Err.Timeout = out.Err.Timeout && (own || c.client.timeout != nil && *c.client.timeout > 0)
		if out.Err.Server == "" && !out.Err.Client {
			out.Err.Server = out.Server
		}
		if p, partial := value.(partial); partial && p.value != nil {
			out.Err.Partial, _ = enginekit.ValueOf(p.value)
		}
		return out
	}
	if p, is := value.(partial); is {
		value = p.value
	}
	if out.Value, err = enginekit.ValueOf(value); err != nil {
		return result.Outcome{Err: argument("the result cannot be written: %v", err)}
	}
	return out
}

func (c *call) ctxDeadline() (time.Time, bool) {
	if c.ctx == nil {
		return time.Time{}, false
	}
	return c.ctx.Deadline()
}

// partial is a result that counts though the operation failed: that of a bulk
// write. A nil value is none.
type partial struct{ value any }

// clientOf finds the client of an entity.
func clientOf(e any) *client {
	switch e := e.(type) {
	case *client:
		return e
	case *database:
		return e.client
	case *collection:
		return e.db.client
	case *session:
		return e.client
	case *bucket:
		return e.client
	case iterator:
		return e.owner()
	}
	return nil
}

// any gives an argument as the driver takes it; nil if it is not there.
func (c *call) any(name string) any {
	if !c.Has(name) {
		return nil
	}
	v, err := plain(c.Arg(name))
	if err != nil {
		return nil // the driver refuses it
	}
	return v
}

// document gives a document argument, nil if it is none.
func (c *call) document(name string) bson.Raw {
	doc, _ := c.Arg(name).DocumentOK()
	return doc
}

// filter gives the filter, by default an empty one.
func (c *call) filter() any {
	if !c.Has("filter") {
		return bson.D{}
	}
	return c.any("filter")
}

func (c *call) session() *session { return c.entity.(*session) }

// rest gives the arguments that are options of the driver.
func (c *call) rest() bson.Raw {
	rest, _, _ := without(c.Given, append(strings.Fields(c.row.takes), "session", "timeoutMS")...)
	return rest
}

// optionsOf gives the options of a row for the driver.
func optionsOf[T any](c *call) options.Lister[T] { return filled[T](c.row.name, c.rest()) }

// without gives a document that lacks some fields, and the last of these.
func without(doc bson.Raw, names ...string) (bson.Raw, bson.RawValue, error) {
	elements, err := doc.Elements()
	var taken bson.RawValue
	rest := bson.D{}
	for _, e := range elements {
		if slices.Contains(names, e.Key()) {
			taken = e.Value()
		} else {
			rest = append(rest, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	if err != nil {
		return nil, taken, err
	}
	raw, err := bson.Marshal(rest)
	return raw, taken, err
}

// concerns are the arguments that the driver takes with the collection or the
// database and not with the call.
const (
	readConcerns  = " readConcern readPreference "
	writeConcerns = " writeConcern "
)

// coll gives the collection with the concerns that the operation says.
func (c *call) coll() *mongo.Collection {
	return c.entity.(*collection).Clone(&lister[options.CollectionOptions]{func(o *options.CollectionOptions) error {
		return fill(o, c.row.name, c.concerns())
	}})
}

// db gives the database with the concerns that the operation says.
func (c *call) db() *mongo.Database {
	d := c.entity.(*database)
	return c.database(d.Name(), d.options)
}

// database gives a database of the client in the same way.
func (c *call) database(name string, inherited ...options.Lister[options.DatabaseOptions]) *mongo.Database {
	said := &lister[options.DatabaseOptions]{func(o *options.DatabaseOptions) error { return fill(o, c.row.name, c.concerns()) }}
	return c.client.Database(name, append(inherited, said)...)
}

func (c *call) concerns() bson.Raw {
	names := strings.Fields(readConcerns + writeConcerns)
	elements, _ := c.Given.Elements()
	var others []string
	for _, e := range elements {
		if !slices.Contains(names, e.Key()) {
			others = append(others, e.Key())
		}
	}
	said, _, _ := without(c.Given, others...)
	return said
}

// list makes a result of a list: an empty one is no null.
func list[T any](items []T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if items == nil {
		items = []T{}
	}
	return items, nil
}

// single gives the document of a result, null if there was none.
func single(r *mongo.SingleResult) (any, error) {
	doc, err := r.Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	return doc, err
}

// all reads a cursor to its end.
func all(ctx context.Context, cursor *mongo.Cursor, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	docs := []bson.Raw{}
	if err := cursor.All(ctx, &docs); err != nil {
		return nil, err
	}
	return docs, nil
}
