package driver

import (
	"context"
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

// rows is the operation table, by families.
func rows() []row {
	return slices.Concat(clientRows(), databaseRows(), collectionRows(), indexRows(), cursorRows(), sessionRows(), bucketRows())
}

// Arguments lists the arguments of the format's table that an operation is
// served with; false if the driver does not have the operation.
func Arguments(kind operations.Kind, name string) ([]string, bool) {
	return enginekit.NewTable(rows()).Arguments(kind, name)
}

// call is one operation under way.
type call struct {
	enginekit.Call[row]
	ctx    context.Context
	client *client
	trace  trace
}

// Do performs an operation.
func (t *test) Do(ctx context.Context, op engine.Operation) result.Outcome {
	asked, failed := t.driver.table.Call(&t.Test, op)
	if failed != nil {
		return result.Outcome{Err: failed}
	}
	c := &call{Call: asked, client: asked.Entity.(owned).owner()}
	end, err := c.begin(ctx)
	defer end()
	var value any
	if err == nil {
		value, err = c.Row.run(c)
	}
	return c.outcome(value, err)
}

// begin checks the options and makes the context.
func (c *call) begin(ctx context.Context) (context.CancelFunc, error) {
	none := func() {}
	// The driver would ignore errors of a collection's options.
	if err := fill(new(options.CollectionOptions), c.Row.name, c.concerns()); err != nil {
		return none, err
	}
	timeout, err := c.timeoutMS()
	if err != nil {
		return none, err
	}
	plain, stop := undated(ctx)
	timedOut, cancel := timed(context.WithValue(plain, traceKey{}, &c.trace), timeout)
	c.ctx = timedOut
	end := func() { cancel(); stop() }
	if c.Has("session") {
		s, err := c.Test.Entities.Named(c.Given, "session", operations.Session)
		if err != nil {
			return end, enginekit.Argument("%v", err)
		}
		c.ctx = mongo.NewSessionContext(c.ctx, s.(*session).Session)
	} else if mongo.SessionFromContext(c.ctx) != nil {
		// In a callback, an operation is part of the transaction only if it
		// says so.
		c.ctx = mongo.NewSessionContext(c.ctx, nil)
	}
	return end, nil
}

// timeoutMS reads the argument. The driver takes it as the deadline of a context, so
// that one operation cannot switch off the time limit of its client.
func (c *call) timeoutMS() (*time.Duration, error) {
	if !c.Has("timeoutMS") {
		return nil, nil
	}
	d, ok := milliseconds(c.Arg("timeoutMS"))
	switch {
	case !ok || d < 0:
		return nil, enginekit.Argument("timeoutMS is not a number of milliseconds")
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
		own := false
		if c.ctx != nil {
			_, own = c.ctx.Deadline()
		}
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
		return result.Outcome{Err: enginekit.Argument("the result cannot be written: %v", err)}
	}
	return out
}

// partial is a result that counts though the operation failed: that of a bulk
// write. The value is nil if there is none.
type partial struct{ value any }

// owned is an entity, which belongs to a client or is one.
type owned interface{ owner() *client }

func (c *client) owner() *client     { return c }
func (d *database) owner() *client   { return d.client }
func (c *collection) owner() *client { return c.db.client }
func (s *session) owner() *client    { return s.client }
func (b *bucket) owner() *client     { return b.client }

// any gives an argument as the driver takes it; nil if it is absent, but for a
// filter, which is empty then.
func (c *call) any(name string) any {
	if !c.Has(name) {
		if name == "filter" {
			return bson.D{}
		}
		return nil
	}
	v, err := plain(c.Arg(name))
	if err != nil {
		return nil // the driver refuses it
	}
	return v
}

func (c *call) session() *session { return c.Entity.(*session) }

// rest gives the arguments that are options of the driver.
func (c *call) rest() bson.Raw {
	rest, _ := without(c.Given, append(strings.Fields(c.Row.takes), "session", "timeoutMS")...)
	return rest
}

// without gives a document that lacks some fields.
func without(doc bson.Raw, names ...string) (bson.Raw, error) {
	return only(doc, func(name string) bool { return !slices.Contains(names, name) })
}

// only gives a document with some of its fields.
func only(doc bson.Raw, keeps func(name string) bool) (bson.Raw, error) {
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	kept := bson.D{}
	for _, e := range elements {
		if keeps(e.Key()) {
			kept = append(kept, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return bson.Marshal(kept)
}

// concerns are the arguments that the driver takes with the collection or the
// database and not with the call.
const (
	readConcerns  = " readConcern readPreference "
	writeConcerns = " writeConcern "
)

// coll gives the collection with the concerns that the operation says.
func (c *call) coll() *mongo.Collection {
	var o options.CollectionOptions
	_ = fill(&o, c.Row.name, c.concerns()) // begin has checked them
	return c.Entity.(*collection).Clone(given(o))
}

// db gives the database with the concerns that the operation says.
func (c *call) db() *mongo.Database {
	d := c.Entity.(*database)
	return c.database(d.Name(), d.options)
}

// database gives a database of the client in the same way, with options that
// the concerns replace.
func (c *call) database(name string, o options.DatabaseOptions) *mongo.Database {
	_ = fill(&o, c.Row.name, c.concerns()) // begin has checked them
	return c.client.Database(name, given(o))
}

func (c *call) concerns() bson.Raw {
	names := strings.Fields(readConcerns + writeConcerns)
	said, _ := only(c.Given, func(name string) bool { return slices.Contains(names, name) })
	return said
}
