package driver

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/result"
)

// rows is the table of operations.
func rows() []row {
	all := slices.Concat(clientRows(), databaseRows(), collectionRows(), indexRows(), cursorRows(), sessionRows(),
		bucketRows())
	for i, r := range all {
		op, _ := operations.Lookup(r.kind, r.name)
		for _, a := range op.Arguments {
			if a.Required && a.Name != "callback" {
				all[i].args += " " + a.Name
			}
		}
	}
	return all
}

// call is an operation in progress.
type call struct {
	enginekit.Call[row]
	ctx      context.Context
	client   *client
	concerns options.CollectionOptions // of the operation
	trace    trace
	partial  any // the result of a bulk write, valid even if it failed; nil if the driver returned none
}

// Do performs an operation.
func (t *test) Do(ctx context.Context, op engine.Operation) result.Outcome {
	request, failed := t.driver.table.Call(&t.Test, op)
	if failed != nil {
		return result.Outcome{Err: failed}
	}
	c := &call{Call: request, client: request.Entity.(owned).owner()}
	return c.outcome(c.perform(ctx))
}

// perform creates the context and runs the operation.
func (c *call) perform(ctx context.Context) (any, error) {
	if err := fill(&c.concerns, c.Row.name, only(c.Given, readConcerns+writeConcerns)); err != nil {
		return nil, err
	}
	timeout, err := c.timeoutMS()
	if err != nil {
		return nil, err
	}
	plain, stop := undated(ctx)
	defer stop()
	timed, cancel := timed(context.WithValue(plain, traceKey{}, &c.trace), timeout)
	defer cancel()
	c.ctx = timed
	if c.Has("session") {
		s, err := c.Session()
		if err != nil {
			return nil, err
		}
		c.ctx = mongo.NewSessionContext(c.ctx, s.(*session).Session)
	} else if mongo.SessionFromContext(c.ctx) != nil {
		// In a callback, only operations with a session argument are part of the transaction.
		c.ctx = mongo.NewSessionContext(c.ctx, nil)
	}
	return c.Row.run(c)
}

// timeoutMS reads the argument. The driver takes it from the deadline of a
// context, so an operation cannot disable the timeout of its client.
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

// outcome converts the result or error of the operation.
func (c *call) outcome(value any, err error) result.Outcome {
	var out result.Outcome
	if last := c.trace.last.Load(); last != nil {
		out.Server, out.ServiceID = last.Address, last.ServiceID
	}
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
		if c.partial != nil {
			out.Err.Partial, _ = enginekit.ValueOf(c.partial)
		}
		return out
	}
	if out.Value, err = enginekit.ValueOf(value); err != nil {
		return result.Outcome{Err: enginekit.Argument("cannot convert the result: %v", err)}
	}
	return out
}

// owned is an entity that is a client or belongs to one.
type owned interface{ owner() *client }

func (c *client) owner() *client     { return c }
func (d *database) owner() *client   { return d.client }
func (c *collection) owner() *client { return c.db.client }
func (s *session) owner() *client    { return s.client }
func (b *bucket) owner() *client     { return b.client }

// any returns an argument as the driver expects it. An absent argument is nil, except that an absent filter is empty.
func (c *call) any(name string) any {
	if !c.Has(name) {
		if name == "filter" {
			return bson.D{}
		}
		return nil
	}
	v, err := plain(c.Arg(name))
	if err != nil {
		return nil // which the driver rejects
	}
	return v
}

func (c *call) session() *session { return c.Entity.(*session) }

// rest returns the arguments that are options of the driver.
func (c *call) rest() bson.Raw { return without(c.Given, c.Row.args+" session timeoutMS") }

// only returns a document with some of its fields, whose names are separated by spaces.
// For an invalid document it returns nil, so that fill rejects it.
func only(doc bson.Raw, names string) bson.Raw { return choose(doc, names, true) }

// without returns a document without some of its fields, like only.
func without(doc bson.Raw, names string) bson.Raw { return choose(doc, names, false) }

func choose(doc bson.Raw, names string, named bool) bson.Raw {
	elements, err := doc.Elements()
	if err != nil {
		return nil
	}
	kept := bson.D{}
	for _, e := range elements {
		if slices.Contains(strings.Fields(names), e.Key()) == named {
			kept = append(kept, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	chosen, _ := bson.Marshal(kept)
	return chosen
}

// The arguments that are options of the collection or database in the driver, not of the operation.
const (
	readConcerns  = " readConcern readPreference "
	writeConcerns = " writeConcern "
)

// coll returns the collection with the concerns of the operation.
func (c *call) coll() *mongo.Collection { return c.Entity.(*collection).Clone(given(c.concerns)) }

// db returns the database with the concerns of the operation.
func (c *call) db() *mongo.Database {
	d := c.Entity.(*database)
	return c.database(d.Name(), d.options)
}

// database returns a database of the client. The concerns of the operation override its options.
func (c *call) database(name string, o options.DatabaseOptions) *mongo.Database {
	return c.client.Database(name, given(o), given(options.DatabaseOptions(c.concerns)))
}
