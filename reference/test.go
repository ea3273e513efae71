package reference

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// test holds the entities of one test.
type test struct {
	enginekit.Test // of *client, *database, *collection, *clientSession, *bucket, iterator
	driver         *driver
}

func newTest(d *driver) *test {
	t := &test{driver: d}
	t.Test = enginekit.Test{Fields: fields(), Unsupported: unsupported, Make: t.make, KindOf: kindOf, CloseEntity: closeEntity, LogOf: logOf,
		Ended: func() { d.open.Forget(t) }}
	return t
}

// database is a database entity.
type database struct {
	client  *client
	name    string
	options scope
}

// collection is a collection entity.
type collection struct {
	db      *database
	name    string
	options scope
}

// scope holds what clients, databases and collections hand down.
type scope struct {
	preference                selection.Preference
	readConcern, writeConcern bson.D
	timeout                   *time.Duration
}

// iterator is a cursor or a change stream.
type iterator interface {
	// next gives a document. With wait it goes on until there is one, the
	// cursor is exhausted, or an error comes; otherwise it tries once.
	next(ctx context.Context, wait bool, tr *trace) (bson.Raw, *result.Error)
	// close kills the cursor on the server, quietly. It has the time of timeoutMS,
	// nil for that of the operation that created the cursor, anew.
	close(ctx context.Context, limit *time.Duration, tr *trace)
	owner() *client
}

// fields lists what an entity's document may hold.
func fields() map[string][]string {
	return map[string][]string{
		"client": {"autoEncryptOpts", "awaitMinPoolSizeMS", "id", "ignoreCommandMonitoringEvents", "observeEvents",
			"observeLogMessages", "observeSensitiveCommands", "observeTracingMessages", "serverApi",
			"storeEventsAsEntities", "uriOptions", "useMultipleMongoses"},
		"database":   {"client", "databaseName", "databaseOptions", "id"},
		"collection": {"collectionName", "collectionOptions", "database", "id"},
		"session":    {"client", "id", "sessionOptions"},
		"bucket":     {"bucketOptions", "database", "id"},
	}
}

func (t *test) make(ctx context.Context, e engine.Entity) (any, error) {
	text := func(field string) string { s, _ := e.Options.Lookup(field).StringValueOK(); return s }
	switch e.Kind {
	case "client":
		for _, lack := range []string{"autoEncryptOpts", "observeTracingMessages"} {
			if e.Options.Lookup(lack).Type != 0 {
				return nil, unsupported(lack)
			}
		}
		c, err := newClient(t.driver, e.URI, e.Options)
		if err != nil {
			return nil, err
		}
		if ms, ok := enginekit.Integer(e.Options.Lookup("awaitMinPoolSizeMS")); ok && ms > 0 {
			if err := c.awaitPool(ctx, time.Duration(ms)*time.Millisecond); err != nil {
				c.close()
				return nil, err
			}
		}
		return c, nil
	case "database":
		c, err := enginekit.Named[*client](&t.Entities, e.Options, "client")
		if err != nil {
			return nil, err
		}
		o, err := c.scope().with(e.Options.Lookup("databaseOptions"))
		return &database{client: c, name: text("databaseName"), options: o}, err
	case "collection":
		d, err := enginekit.Named[*database](&t.Entities, e.Options, "database")
		if err != nil {
			return nil, err
		}
		o, err := d.options.with(e.Options.Lookup("collectionOptions"))
		return &collection{db: d, name: text("collectionName"), options: o}, err
	case "bucket":
		d, err := enginekit.Named[*database](&t.Entities, e.Options, "database")
		if err != nil {
			return nil, err
		}
		return newBucket(d, e.Options.Lookup("bucketOptions"))
	default:
		c, err := enginekit.Named[*client](&t.Entities, e.Options, "client")
		if err != nil {
			return nil, err
		}
		s, err := t.openSession(c, e)
		if err == nil {
			// At once, as drivers may: taken when $lsid is asked for, it could be
			// that of an implicit session before, and an expectation hold by that.
			s.acquired()
		}
		return s, err
	}
}

func (c *client) scope() scope {
	return scope{preference: c.settings.readPreference, readConcern: c.settings.readConcern,
		writeConcern: c.settings.writeConcern, timeout: c.settings.timeout}
}

// with applies a collectionOrDatabaseOptions document.
func (s scope) with(v bson.RawValue) (scope, error) {
	if v.Type == 0 {
		return s, nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return s, errors.New("options are no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return s, err
	}
	for _, e := range elements {
		switch e.Key() {
		case "readConcern":
			s.readConcern, err = readConcernOf(e.Value())
		case "writeConcern":
			s.writeConcern, err = writeConcernOf(e.Value())
		case "readPreference":
			s.preference, err = preferenceOf(e.Value())
		case "timeoutMS":
			s.timeout, err = timeoutOf(e.Value())
		default:
			err = unsupported("option " + e.Key())
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// openSession makes a session entity.
func (t *test) openSession(c *client, e engine.Entity) (*clientSession, error) {
	s := c.newSession(false)
	if e.ClusterTime != nil {
		wrapped, err := bson.Marshal(bson.D{{Key: "$clusterTime", Value: e.ClusterTime}})
		if err != nil {
			return nil, err
		}
		if _, err := e.ClusterTime.LookupErr("$clusterTime"); err == nil {
			wrapped = e.ClusterTime
		}
		s.advance(wrapped, nil)
		c.clock.AdvanceClusterTime(wrapped)
	}
	doc, ok := e.Options.Lookup("sessionOptions").DocumentOK()
	if !ok {
		return s, nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	causal := false
	for _, o := range elements {
		v := o.Value()
		switch o.Key() {
		case "causalConsistency":
			s.causal, ok = v.BooleanOK()
			causal = s.causal
		case "snapshot":
			s.snapshot, ok = v.BooleanOK()
		case "snapshotTime":
			var at bson.RawValue
			if at, err = t.savedValue(v); err == nil {
				var tt, i uint32
				if tt, i, ok = at.TimestampOK(); ok {
					s.snapshotTime = &bson.Timestamp{T: tt, I: i}
				}
			}
		case "defaultTimeoutMS":
			s.timeout, err = timeoutOf(v)
		case "defaultTransactionOptions":
			s.defaults, err = transactionOptionsOf(v)
		default:
			err = unsupported("session option " + o.Key())
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("sessionOptions.%s has the wrong type", o.Key())
		}
	}
	if s.snapshot && causal {
		return nil, errors.New("causalConsistency and snapshot cannot both be true")
	}
	if s.snapshot {
		s.causal = false
	}
	return s, nil
}

// savedValue reads a timestamp that is given as it is, or by the name of a
// saved value. The names of saved values belong to the runner, which replaces
// them before.
func (t *test) savedValue(v bson.RawValue) (bson.RawValue, error) {
	if v.Type == bson.TypeTimestamp {
		return v, nil
	}
	return v, unsupported("snapshotTime by name")
}

func logOf(e any) (*enginekit.EventLog, bool) {
	c, ok := e.(*client)
	if !ok {
		return nil, false
	}
	return c.log, true
}

func closeEntity(ctx context.Context, e any) {
	switch e := e.(type) {
	case iterator:
		e.close(ctx, nil, &trace{})
	case *clientSession:
		e.finish(ctx, &trace{})
	case *client:
		e.close()
	}
}

// kindOf gives the operations' kind of an entity.
func kindOf(e any) operations.Kind {
	switch e.(type) {
	case *client:
		return operations.Client
	case *database:
		return operations.Database
	case *collection:
		return operations.Collection
	case *clientSession:
		return operations.Session
	case *bucket:
		return operations.Bucket
	default:
		return operations.Cursor
	}
}
