package reference_test

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// wireOp is an operation that the reference engine and an official driver
// perform alike.
type wireOp struct {
	name string
	// Ours: an operation of the format on an entity. What save tells to keep
	// is closed right after.
	object, operation string
	args              bson.D
	save              bool
	// transaction is the operation's own: begun before it, and ended by the
	// named operation.
	transaction string
	writes      bool
	// theirs does the same with the Go driver; errors are the servers' matter,
	// and both drivers get the same.
	theirs func(ctx context.Context, d official)
}

// official is the Go driver's side.
type official struct {
	client *mongo.Client
	db     *mongo.Database
	coll   *mongo.Collection
}

func all(ctx context.Context, k *mongo.Cursor, err error) {
	if err == nil {
		var d []bson.Raw
		_ = k.All(ctx, &d)
	}
}

func hang(ctx context.Context, s *mongo.ChangeStream, err error) {
	if err == nil {
		_ = s.Close(ctx)
	}
}

func doc(pairs ...any) bson.D {
	d := bson.D{}
	for i := 0; i+1 < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return d
}

// wireOps is the table: reads first, then writes, of which the last leaves the
// collection as it was.
func wireOps() []wireOp {
	everything := doc("filter", bson.D{})
	pipeline := func(stages ...any) bson.D { return doc("pipeline", append(bson.A{}, stages...)) }
	match := doc("$match", bson.D{})
	sessions := doc("$listLocalSessions", bson.D{})
	set := doc("$set", doc("a", 1))
	id := func(n int) bson.D { return doc("_id", n) }
	read := []wireOp{
		{name: "find", object: "collection", operation: "find", args: everything,
			theirs: func(ctx context.Context, d official) { k, err := d.coll.Find(ctx, bson.D{}); all(ctx, k, err) }},
		{name: "findBatches", object: "collection", operation: "find", args: doc("filter", bson.D{}, "batchSize", 2),
			theirs: func(ctx context.Context, d official) {
				k, err := d.coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
				all(ctx, k, err)
			}},
		{name: "findLimit", object: "collection", operation: "find", args: doc("filter", bson.D{}, "limit", 4, "batchSize", 3),
			theirs: func(ctx context.Context, d official) {
				k, err := d.coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(3).SetLimit(4))
				all(ctx, k, err)
			}},
		{name: "findNegative", object: "collection", operation: "find", args: doc("filter", bson.D{}, "limit", -2),
			theirs: func(ctx context.Context, d official) {
				k, err := d.coll.Find(ctx, bson.D{}, options.Find().SetLimit(-2))
				all(ctx, k, err)
			}},
		{name: "findOne", object: "collection", operation: "findOne", args: everything,
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.FindOne(ctx, bson.D{}).Raw() }},
		{name: "aggregate", object: "collection", operation: "aggregate",
			args: append(pipeline(match), bson.E{Key: "batchSize", Value: 2}),
			theirs: func(ctx context.Context, d official) {
				k, err := d.coll.Aggregate(ctx, bson.A{match}, options.Aggregate().SetBatchSize(2))
				all(ctx, k, err)
			}},
		{name: "aggregateDatabase", object: "database", operation: "aggregate", args: pipeline(sessions),
			theirs: func(ctx context.Context, d official) {
				k, err := d.db.Aggregate(ctx, bson.A{sessions})
				all(ctx, k, err)
			}},
		{name: "countDocuments", object: "collection", operation: "countDocuments", args: everything,
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.CountDocuments(ctx, bson.D{}) }},
		{name: "estimatedDocumentCount", object: "collection", operation: "estimatedDocumentCount",
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.EstimatedDocumentCount(ctx) }},
		{name: "distinct", object: "collection", operation: "distinct", args: doc("fieldName", "_id", "filter", bson.D{}),
			theirs: func(ctx context.Context, d official) { _ = d.coll.Distinct(ctx, "_id", bson.D{}) }},
		{name: "listDatabases", object: "client", operation: "listDatabases",
			theirs: func(ctx context.Context, d official) { _, _ = d.client.ListDatabases(ctx, bson.D{}) }},
		{name: "listDatabaseNames", object: "client", operation: "listDatabaseNames",
			theirs: func(ctx context.Context, d official) { _, _ = d.client.ListDatabaseNames(ctx, bson.D{}) }},
		{name: "listCollections", object: "database", operation: "listCollections",
			theirs: func(ctx context.Context, d official) { k, err := d.db.ListCollections(ctx, bson.D{}); all(ctx, k, err) }},
		{name: "listCollectionNames", object: "database", operation: "listCollectionNames",
			theirs: func(ctx context.Context, d official) { _, _ = d.db.ListCollectionNames(ctx, bson.D{}) }},
		{name: "listIndexes", object: "collection", operation: "listIndexes",
			theirs: func(ctx context.Context, d official) { k, err := d.coll.Indexes().List(ctx); all(ctx, k, err) }},
		{name: "watch", object: "collection", operation: "createChangeStream", args: pipeline(), save: true,
			theirs: func(ctx context.Context, d official) { s, err := d.coll.Watch(ctx, bson.A{}); hang(ctx, s, err) }},
		{name: "watchDatabase", object: "database", operation: "createChangeStream", args: pipeline(), save: true,
			theirs: func(ctx context.Context, d official) { s, err := d.db.Watch(ctx, bson.A{}); hang(ctx, s, err) }},
		{name: "watchClient", object: "client", operation: "createChangeStream", args: pipeline(), save: true,
			theirs: func(ctx context.Context, d official) { s, err := d.client.Watch(ctx, bson.A{}); hang(ctx, s, err) }},
		{name: "cursorClose", object: "collection", operation: "createFindCursor", args: doc("filter", bson.D{}, "batchSize", 2), save: true,
			theirs: func(ctx context.Context, d official) {
				if k, err := d.coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2)); err == nil {
					_ = k.Close(ctx)
				}
			}},
		{name: "runCommand", object: "database", operation: "runCommand",
			args:   doc("commandName", "ping", "command", doc("ping", 1)),
			theirs: func(ctx context.Context, d official) { _ = d.db.RunCommand(ctx, doc("ping", 1)) }},
		{name: "runCursorCommand", object: "database", operation: "runCursorCommand",
			args: doc("commandName", "find", "batchSize", 2, "command", doc("find", "coll", "batchSize", 2)),
			theirs: func(ctx context.Context, d official) {
				k, err := d.db.RunCommandCursor(ctx, doc("find", "coll", "batchSize", 2))
				if err == nil {
					k.SetBatchSize(2)
				}
				all(ctx, k, err)
			}},
	}
	write := []wireOp{
		{name: "out", object: "collection", operation: "aggregate", args: pipeline(match, doc("$out", "out")),
			theirs: func(ctx context.Context, d official) {
				k, err := d.coll.Aggregate(ctx, bson.A{match, doc("$out", "out")})
				all(ctx, k, err)
			}},
		{name: "insertOne", object: "collection", operation: "insertOne", args: doc("document", id(10)),
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.InsertOne(ctx, id(10)) }},
		{name: "insertMany", object: "collection", operation: "insertMany", args: doc("documents", bson.A{id(11), id(12)}),
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.InsertMany(ctx, bson.A{id(11), id(12)}) }},
		{name: "insertUnordered", object: "collection", operation: "insertMany", args: doc("documents", bson.A{id(13), id(13), id(14)}, "ordered", false),
			theirs: func(ctx context.Context, d official) {
				_, _ = d.coll.InsertMany(ctx, bson.A{id(13), id(13), id(14)}, options.InsertMany().SetOrdered(false))
			}},
		{name: "updateOne", object: "collection", operation: "updateOne", args: doc("filter", id(10), "update", set, "upsert", true),
			theirs: func(ctx context.Context, d official) {
				_, _ = d.coll.UpdateOne(ctx, id(10), set, options.UpdateOne().SetUpsert(true))
			}},
		{name: "updateMany", object: "collection", operation: "updateMany", args: doc("filter", id(11), "update", set),
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.UpdateMany(ctx, id(11), set) }},
		{name: "replaceOne", object: "collection", operation: "replaceOne", args: doc("filter", id(11), "replacement", doc("b", 1)),
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.ReplaceOne(ctx, id(11), doc("b", 1)) }},
		{name: "deleteOne", object: "collection", operation: "deleteOne", args: doc("filter", id(10)),
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.DeleteOne(ctx, id(10)) }},
		{name: "findOneAndUpdate", object: "collection", operation: "findOneAndUpdate",
			args: doc("filter", id(11), "update", set, "returnDocument", "After"),
			theirs: func(ctx context.Context, d official) {
				_ = d.coll.FindOneAndUpdate(ctx, id(11), set, options.FindOneAndUpdate().SetReturnDocument(options.After))
			}},
		{name: "findOneAndReplace", object: "collection", operation: "findOneAndReplace", args: doc("filter", id(11), "replacement", doc("c", 1)),
			theirs: func(ctx context.Context, d official) { _ = d.coll.FindOneAndReplace(ctx, id(11), doc("c", 1)) }},
		{name: "findOneAndDelete", object: "collection", operation: "findOneAndDelete", args: doc("filter", id(11)),
			theirs: func(ctx context.Context, d official) { _ = d.coll.FindOneAndDelete(ctx, id(11)) }},
		{name: "bulkWrite", object: "collection", operation: "bulkWrite",
			args: doc("requests", bson.A{doc("insertOne", doc("document", id(15))),
				doc("updateOne", doc("filter", id(15), "update", set)), doc("deleteOne", doc("filter", id(15)))}),
			theirs: func(ctx context.Context, d official) {
				_, _ = d.coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(id(15)),
					mongo.NewUpdateOneModel().SetFilter(id(15)).SetUpdate(set), mongo.NewDeleteOneModel().SetFilter(id(15))})
			}},
		{name: "clientBulkWrite", object: "client", operation: "clientBulkWrite",
			args: doc("models", bson.A{doc("insertOne", doc("namespace", "db.coll", "document", id(16))),
				doc("deleteOne", doc("namespace", "db.coll", "filter", id(16)))}),
			theirs: func(ctx context.Context, d official) {
				_, _ = d.client.BulkWrite(ctx, []mongo.ClientBulkWrite{
					{Database: "db", Collection: "coll", Model: mongo.NewClientInsertOneModel().SetDocument(id(16))},
					{Database: "db", Collection: "coll", Model: mongo.NewClientDeleteOneModel().SetFilter(id(16))}})
			}},
		{name: "commitTransaction", object: "collection", operation: "insertOne", args: doc("document", id(17)), transaction: "commitTransaction",
			theirs: func(ctx context.Context, d official) {
				transact(ctx, d, func(ctx context.Context) { _, _ = d.coll.InsertOne(ctx, id(17)) }, (*mongo.Session).CommitTransaction)
			}},
		{name: "abortTransaction", object: "collection", operation: "find", args: doc("filter", bson.D{}, "batchSize", 2), transaction: "abortTransaction",
			theirs: func(ctx context.Context, d official) {
				transact(ctx, d, func(ctx context.Context) {
					k, err := d.coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
					all(ctx, k, err)
				}, (*mongo.Session).AbortTransaction)
			}},
		{name: "createCollection", object: "database", operation: "createCollection", args: doc("collection", "made"),
			theirs: func(ctx context.Context, d official) { _ = d.db.CreateCollection(ctx, "made") }},
		{name: "createIndex", object: "collection", operation: "createIndex", args: doc("keys", doc("a", 1), "name", "a_1"),
			theirs: func(ctx context.Context, d official) {
				_, _ = d.coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: doc("a", 1), Options: options.Index().SetName("a_1")})
			}},
		{name: "dropIndex", object: "collection", operation: "dropIndex", args: doc("name", "a_1"),
			theirs: func(ctx context.Context, d official) { _ = d.coll.Indexes().DropOne(ctx, "a_1") }},
		{name: "dropCollection", object: "database", operation: "dropCollection", args: doc("collection", "made"),
			theirs: func(ctx context.Context, d official) { _ = d.db.Collection("made").Drop(ctx) }},
		{name: "dropDatabase", object: "client", operation: "dropDatabase", args: doc("database", "made"),
			theirs: func(ctx context.Context, d official) { _ = d.client.Database("made").Drop(ctx) }},
		{name: "deleteMany", object: "collection", operation: "deleteMany", args: doc("filter", doc("_id", doc("$gte", 10))),
			theirs: func(ctx context.Context, d official) { _, _ = d.coll.DeleteMany(ctx, doc("_id", doc("$gte", 10))) }},
	}
	for _, w := range write {
		w.writes = true
		read = append(read, w)
	}
	return read
}

// transact does something in a transaction of its own session.
func transact(ctx context.Context, d official, do func(context.Context), end func(*mongo.Session, context.Context) error) {
	s, err := d.client.StartSession()
	if err != nil {
		return
	}
	defer s.EndSession(ctx)
	if s.StartTransaction() != nil {
		return
	}
	do(mongo.NewSessionContext(ctx, s))
	_ = end(s, ctx)
}
