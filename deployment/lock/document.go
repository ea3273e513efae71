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

	"github.com/unified-test-runner/utr/deployment/wire"
)

// The error codes that taking a lock distinguishes.
const (
	codeUnauthorized  = 13
	codeWriteConflict = 112
	codeDuplicateKey  = 11000
	codeInterrupted   = 11601
)

// Store is the lock document of one deployment.
type Store interface {
	// Take writes the document of a holder, and reports whether it did: not if
	// somebody else holds the lock.
	Take(ctx context.Context, h Holder, lease time.Duration) (bool, error)
	// Renew prolongs the lease of a run, and reports whether it still holds it.
	Renew(ctx context.Context, run string, lease time.Duration) (bool, error)
	// Read gives the holder, nil if there is none.
	Read(ctx context.Context) (*Holder, error)
	// Remove deletes the document of a run, if it is there.
	Remove(ctx context.Context, run string) error
	// Quiet reports whether a write now would meet no fail point of a test.
	Quiet(ctx context.Context) bool
	Close()
}

// Document is the lock document of a deployment: its Store.
type Document struct {
	// Run runs a command where the document is.
	Run    func(ctx context.Context, database string, command bson.D) (bson.Raw, error)
	client *mongo.Client
}

// Open opens the lock document of the deployment that a client of ours reaches.
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

// run repeats a command after an error that says nothing of it: to do twice what is
// done about a lock is to do it once.
func (d *Document) run(ctx context.Context, database string, command bson.D) (reply bson.Raw, err error) {
	for range tries {
		reply, err = d.Run(ctx, database, command)
		code := wire.CodeOf(err) // somebody else's killAllSessions interrupts it
		if passes := wire.Passing(err) || code == codeWriteConflict || code == codeInterrupted; !passes || ctx.Err() != nil {
			break
		}
	}
	return reply, err
}

func (d *Document) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = d.client.Disconnect(ctx) // the deployment may be gone
}

// minority is a write for which the wait for a majority has failed.
type minority struct{ cause mongo.WriteException }

func (m minority) Error() string { return "no majority has it: " + m.cause.WriteConcernError.Message }
func (m minority) Unwrap() error { return m.cause }

// majority is the write concern of everything about a lock. A standalone takes
// it, too.
var majority = bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: (lockTry / 2).Milliseconds()}}}

// leased are the fields that a renewal sets, by the server's clock.
func leased(lease time.Duration) bson.D {
	return bson.D{
		{Key: "renewed", Value: "$$NOW"},
		{Key: "expires", Value: bson.D{{Key: "$add", Value: bson.A{"$$NOW", lease.Milliseconds()}}}},
	}
}

// modify changes the lock document where query finds it, by a pipeline, and
// gives it as it is then; nil if there is none.
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

// take is one atomic step: the document stays as it is if somebody holds the
// lock, and reports who has it then. (That the lock is free cannot stand
// in the query: an upsert takes no $expr.) Two that make the document at the same
// moment meet in its _id.
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
	now, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}}, bson.D{{Key: "$replaceWith", Value: operator("$cond", free, mine, "$$ROOT")}}, true)
	if wire.CodeOf(err) == codeDuplicateKey {
		return false, nil
	}
	run, _ := now.Lookup("run").StringValueOK()
	return err == nil && run == h.Run, err
}

func (d *Document) Renew(ctx context.Context, run string, lease time.Duration) (bool, error) {
	now, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}, {Key: "run", Value: run}}, bson.D{{Key: "$set", Value: leased(lease)}}, false)
	return now != nil, err
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
		return nil, fmt.Errorf("the document is not one of a lock: %w", err)
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
