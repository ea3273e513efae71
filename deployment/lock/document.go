package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// Store is the lock document of one deployment.
type Store interface {
	// Take writes the document of a holder. It returns false if another run holds the lock.
	Take(ctx context.Context, h Holder, lease time.Duration) (bool, error)
	// Renew extends the lease of a run. It returns false if the run does not hold the lock, or its lease has expired.
	Renew(ctx context.Context, run string, lease time.Duration) (bool, error)
	// Read returns the holder, or nil.
	Read(ctx context.Context) (*Holder, error)
	// Remove deletes the document of a run, if it exists.
	Remove(ctx context.Context, run string) error
	// Quiet reports whether fail points of a test cannot affect a write now.
	Quiet(ctx context.Context) bool
	Close()
}

// Document implements Store with commands that any server has: no updates by pipelines, no expressions.
type Document struct {
	// Run runs a command on the deployment.
	Run func(ctx context.Context, database string, command bson.D) (bson.Raw, error)
	// Clock is a command whose reply has the server's localTime. All servers have isMaster, the default.
	Clock  string
	client *mongo.Client
}

// Open returns the lock document of the deployment that a client with these options connects to. The client polls:
// one that streams heartbeats may wait 10 s for a server, the limit of an attempt to acquire the lock.
func Open(o *options.ClientOptions) (*Document, error) {
	client, err := mongo.Connect(o.SetMinPoolSize(0).SetMaxPoolSize(2).
		SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		return nil, err
	}
	onPrimary := options.RunCmd().SetReadPreference(readpref.Primary())
	return &Document{client: client, Run: func(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
		reply, err := client.Database(database).RunCommand(ctx, command, onPrimary).Raw()
		if late := new(mongo.WriteException); errors.As(err, late) && late.WriteConcernError != nil {
			return nil, minority{*late}
		}
		return reply, err
	}}, nil
}

// run retries a command after a temporary error. All commands of a lock are idempotent.
func (d *Document) run(ctx context.Context, database string, command bson.D) (reply bson.Raw, err error) {
	for range tries {
		reply, err = d.Run(ctx, database, command)
		code := direct.CodeOf(err) // another client's killAllSessions interrupts it
		if passes := direct.Transient(err) || code == codes.WriteConflict || code == codes.Interrupted; !passes ||
			ctx.Err() != nil {
			break
		}
	}
	return reply, err
}

// closeLimit bounds Close.
const closeLimit = time.Second

func (d *Document) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = d.client.Disconnect(ctx) // the deployment may be unreachable
}

// minority is a write that was not acknowledged by a majority.
type minority struct{ cause mongo.WriteException }

func (m minority) Error() string {
	return "not acknowledged by a majority: " + m.cause.WriteConcernError.Message
}
func (m minority) Unwrap() error { return m.cause }

// majority is the write concern of all writes of a lock. A standalone accepts it, too.
var majority = bson.E{Key: "writeConcern",
	Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: (lockTry / 2).Milliseconds()}}}

// now returns the server's time. It is earlier than the time of a command that is sent afterward.
func (d *Document) now(ctx context.Context) (time.Time, error) {
	clock := cmp.Or(d.Clock, "isMaster")
	reply, err := d.run(ctx, "admin", bson.D{{Key: clock, Value: 1}})
	now, ok := reply.Lookup("localTime").TimeOK()
	if err == nil && !ok {
		err = fmt.Errorf("the reply to %s has no localTime", clock)
	}
	return now, err
}

// modify updates the lock document that query matches, and reports whether it exists afterward.
func (d *Document) modify(ctx context.Context, query bson.D, update any, upsert bool) (bool, error) {
	reply, err := d.run(ctx, Database, bson.D{
		{Key: "findAndModify", Value: Collection},
		{Key: "query", Value: query},
		{Key: "update", Value: update},
		{Key: "upsert", Value: upsert},
		{Key: "new", Value: true},
		majority,
	})
	_, exists := reply.Lookup("value").DocumentOK()
	return err == nil && exists, err
}

// Take is atomic. The query matches only a lock that is ours or free. If it matches nothing, the document is inserted,
// and the unique index on _id rejects it if another run holds the lock.
func (d *Document) Take(ctx context.Context, h Holder, lease time.Duration) (bool, error) {
	now, err := d.now(ctx)
	if err != nil {
		return false, err
	}
	h.Started, h.Renewed, h.Expires = now, now, now.Add(lease)
	ours := bson.D{{Key: "run", Value: h.Run}}
	free := bson.D{{Key: "expires", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$gt", Value: now}}}}}} // or is absent
	taken, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}, {Key: "$or", Value: bson.A{ours, free}}}, h, true)
	if direct.CodeOf(err) == codes.DuplicateKey {
		return false, nil
	}
	return taken, err
}

func (d *Document) Renew(ctx context.Context, run string, lease time.Duration) (bool, error) {
	now, err := d.now(ctx)
	if err != nil {
		return false, err
	}
	return d.modify(ctx, bson.D{{Key: "_id", Value: lockID}, {Key: "run", Value: run},
		{Key: "expires", Value: bson.D{{Key: "$gt", Value: now}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "renewed", Value: now}, {Key: "expires", Value: now.Add(lease)}}}}, false)
}

func (d *Document) Read(ctx context.Context) (*Holder, error) {
	now, err := d.now(ctx)
	if err != nil {
		return nil, err
	}
	// If an earlier run left a fail point on, it usually affects find.
	reply, err := d.run(ctx, Database, bson.D{{Key: "aggregate", Value: Collection}, {Key: "cursor", Value: bson.D{}},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: lockID}}}}}}})
	if err != nil {
		return nil, err
	}
	found, ok := reply.Lookup("cursor", "firstBatch", "0").DocumentOK()
	if !ok {
		return nil, nil
	}
	h := Holder{Now: now}
	if err := bson.Unmarshal(found, &h); err != nil {
		return nil, fmt.Errorf("invalid lock document: %w", err)
	}
	return &h, nil
}

func (d *Document) Remove(ctx context.Context, run string) error {
	_, err := d.run(ctx, Database, bson.D{
		{Key: "delete", Value: Collection},
		{Key: "deletes", Value: bson.A{bson.D{
			{Key: "q", Value: bson.D{{Key: "_id", Value: lockID}, {Key: "run", Value: run}}}, {Key: "limit", Value: int32(1)},
		}}},
		majority,
	})
	return err
}

func (d *Document) Quiet(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	const failPoint = "failpoint.failCommand"
	reply, err := d.run(ctx, "admin", bson.D{{Key: "getParameter", Value: 1}, {Key: failPoint, Value: 1}})
	mode, _ := reply.Lookup(failPoint, "mode").AsInt64OK()
	return err == nil && mode == 0
}
