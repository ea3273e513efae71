package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/deployment/direct"
)

const (
	codeUnauthorized  = 13
	codeWriteConflict = 112
	codeDuplicateKey  = 11000
	codeInterrupted   = 11601
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
	// Quiet reports whether no fail point of a test can affect a write now.
	Quiet(ctx context.Context) bool
	Close()
}

// Document implements Store with the commands of a deployment.
type Document struct {
	// Run runs a command on the deployment.
	Run    func(ctx context.Context, database string, command bson.D) (bson.Raw, error)
	client *mongo.Client
}

// Open returns the lock document of the deployment that a client with these options connects to.
func Open(o *options.ClientOptions) (*Document, error) {
	client, err := mongo.Connect(o.SetMinPoolSize(0).SetMaxPoolSize(2))
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
		if passes := direct.Transient(err) || code == codeWriteConflict || code == codeInterrupted; !passes || ctx.Err() != nil {
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

// leased returns the fields that a renewal sets, by the server's clock.
func leased(lease time.Duration) bson.D {
	return bson.D{
		{Key: "renewed", Value: "$$NOW"},
		{Key: "expires", Value: bson.D{{Key: "$add", Value: bson.A{"$$NOW", lease.Milliseconds()}}}},
	}
}

// modify applies a pipeline stage to the lock document that query matches, and returns the document afterward or nil.
func (d *Document) modify(ctx context.Context, query, stage bson.D, upsert bool) (bson.Raw, error) {
	reply, err := d.run(ctx, Database, bson.D{
		{Key: "findAndModify", Value: Collection},
		{Key: "query", Value: query},
		{Key: "update", Value: bson.A{stage}},
		{Key: "upsert", Value: upsert},
		{Key: "new", Value: true},
		majority,
	})
	if err != nil {
		return nil, err
	}
	now, _ := reply.Lookup("value").DocumentOK()
	return now, nil
}

// Take is atomic: it leaves the document unchanged if another run holds the lock, and reads the result. The query
// cannot test whether the lock is free, because an upsert does not allow $expr. Of two concurrent inserts, the
// unique index on _id rejects one.
func (d *Document) Take(ctx context.Context, h Holder, lease time.Duration) (bool, error) {
	operator := func(name string, args ...any) bson.D { return bson.D{{Key: name, Value: bson.A(args)}} }
	literal := func(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }
	free := operator("$or",
		operator("$eq", "$run", literal(h.Run)),
		operator("$lte", operator("$ifNull", "$expires", time.Unix(0, 0)), "$$NOW"))
	mine := append(bson.D{
		{Key: "_id", Value: lockID},
		{Key: "run", Value: literal(h.Run)},
		{Key: "host", Value: literal(h.Host)},
		{Key: "pid", Value: literal(int64(h.PID))},
		{Key: "place", Value: literal(h.Place)},
		{Key: "began", Value: literal(h.Began)},
		{Key: "name", Value: literal(h.Name)},
		{Key: "started", Value: "$$NOW"},
	}, leased(lease)...)
	now, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}},
		bson.D{{Key: "$replaceWith", Value: operator("$cond", free, mine, "$$ROOT")}}, true)
	if direct.CodeOf(err) == codeDuplicateKey {
		return false, nil
	}
	run, _ := now.Lookup("run").StringValueOK()
	return err == nil && run == h.Run, err
}

func (d *Document) Renew(ctx context.Context, run string, lease time.Duration) (bool, error) {
	fields := leased(lease)
	expired := bson.D{{Key: "$lte", Value: bson.A{"$expires", "$$NOW"}}}
	fields[1].Value = bson.D{{Key: "$cond", Value: bson.A{expired, "$expires", fields[1].Value}}}
	now, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}, {Key: "run", Value: run}}, bson.D{{Key: "$set", Value: fields}}, false)
	var h Holder
	if err == nil && now != nil {
		err = bson.Unmarshal(now, &h)
	}
	return h.Expires.After(h.Renewed), err
}

func (d *Document) Read(ctx context.Context) (*Holder, error) {
	reply, err := d.run(ctx, Database, bson.D{
		{Key: "aggregate", Value: Collection},
		{Key: "pipeline", Value: bson.A{
			bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: lockID}}}},
			bson.D{{Key: "$addFields", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
		}},
		{Key: "cursor", Value: bson.D{}},
	})
	if err != nil {
		return nil, err
	}
	found, ok := reply.Lookup("cursor", "firstBatch", "0").DocumentOK()
	if !ok {
		return nil, nil
	}
	var h Holder
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
