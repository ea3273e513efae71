package reference

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// test holds the entities of one test.
type test struct {
	enginekit.Test // entities: *client, namespace, *clientSession, *bucket, iterator
	driver         *driver
}

// namespace is a database or collection entity, or the namespace of another entity.
type namespace struct {
	client   *client
	scope    scope
	db, coll string
}

// entity is any entity.
type entity interface{ ns() namespace }

func (n namespace) ns() namespace { return n }

func (c *client) ns() namespace { return namespace{client: c, scope: c.settings.scope, db: "admin"} }

func (s *clientSession) ns() namespace {
	n := s.client.ns()
	n.scope.timeout = s.timeoutMS()
	return n
}

// scope holds the options that databases inherit from clients, and collections from databases.
type scope struct {
	preference                selection.Preference
	readConcern, writeConcern bson.D         // nil: the server's defaults
	timeout                   *time.Duration // timeoutMS, or nil
	modeOf                    func(name string) selection.Mode
	validate                  func(selection.Preference) error
}

// iterator is a cursor or a change stream.
type iterator interface {
	// next returns the next document. With wait it blocks until there is one, the cursor is exhausted, or an error
	// occurs; otherwise it sends at most one getMore.
	next(ctx context.Context, wait bool, tr *trace) (bson.Raw, *result.Error)
	// close kills the cursor and ignores errors. limit is a timeoutMS; nil is the timeoutMS of the operation that
	// created the cursor.
	close(ctx context.Context, limit *time.Duration, tr *trace)
	entity
}

func (d *driver) make(ctx context.Context, e engine.Entity, parent any) (any, error) {
	given := enginekit.NewArguments(e.Options)
	switch entities.Kind(e.Kind) {
	case entities.Client:
		c, err := newClient(d, e.URI, e.Options)
		if err != nil {
			return nil, err
		}
		if ms := given.Number("awaitMinPoolSizeMS"); ms > 0 {
			if err := c.awaitPool(ctx, time.Duration(ms)*time.Millisecond); err != nil {
				c.close()
				return nil, err
			}
		}
		return c, nil
	case entities.Database:
		c := parent.(*client)
		o, err := c.settings.scope.with("databaseOptions", e.Options.Lookup("databaseOptions"))
		return namespace{client: c, scope: o, db: given.Text("databaseName")}, err
	case entities.Collection:
		n := parent.(namespace)
		o, err := n.scope.with("collectionOptions", e.Options.Lookup("collectionOptions"))
		return namespace{client: n.client, scope: o, db: n.db, coll: given.Text("collectionName")}, err
	case entities.Bucket:
		return newBucket(parent.(namespace), e.Options.Lookup("bucketOptions"))
	default:
		s, err := openSession(parent.(*client), e)
		if err == nil {
			// If it were acquired for $lsid, it could be the server session of an earlier implicit session, and an
			// assertion could hold by accident.
			s.acquired()
		}
		return s, err
	}
}

// with applies a collectionOrDatabaseOptions document.
func (s scope) with(name string, v bson.RawValue) (scope, error) {
	if v.Type == 0 {
		return s, nil
	}
	err := s.fields().Read(name, v, unsupportedField)
	return s, err
}

func (s *scope) fields() enginekit.Fields {
	return enginekit.Fields{
		"readConcern":    enginekit.SetErr(&s.readConcern, readConcernOf),
		"writeConcern":   enginekit.SetErr(&s.writeConcern, writeConcernOf),
		"readPreference": enginekit.SetErr(&s.preference, s.preferenceOf),
		"timeoutMS":      enginekit.SetErr(&s.timeout, timeoutOf),
	}
}

// openSession returns a session entity.
func openSession(c *client, e engine.Entity) (*clientSession, error) {
	s := c.newSession(false)
	if e.ClusterTime != nil {
		wrapped, err := enginekit.ClusterTime(e.ClusterTime)
		if err != nil {
			return nil, err
		}
		s.advance(wrapped, nil)
		c.clock.AdvanceClusterTime(wrapped)
	}
	given := e.Options.Lookup("sessionOptions")
	if given.Type == 0 {
		return s, nil
	}
	var causal *bool
	err := enginekit.Fields{
		"causalConsistency": enginekit.Point(&causal, bson.RawValue.BooleanOK),
		"snapshot":          enginekit.Set(&s.snapshot, bson.RawValue.BooleanOK),
		"snapshotTime": enginekit.Point(&s.snapshotTime, func(v bson.RawValue) (at bson.Timestamp, ok bool) {
			at.T, at.I, ok = v.TimestampOK()
			return at, ok // the runner has replaced names by values
		}),
		"defaultTimeoutMS": enginekit.SetErr(&s.timeout, timeoutOf),
		"defaultTransactionOptions": func(v bson.RawValue) error {
			return s.defaults.fields().Read("transaction options", v, unsupportedField)
		},
	}.Read("sessionOptions", given, unsupportedField)
	s.causal = !s.snapshot
	if causal != nil {
		s.causal = *causal
	}
	if err == nil && s.causal && s.snapshot {
		err = errors.New("causalConsistency and snapshot cannot both be true")
	}
	return s, err
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
