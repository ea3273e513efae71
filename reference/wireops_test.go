package reference

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
	// ours is an operation as stories have it. What "save" creates is closed
	// right after; "commit" and "abort" end a transaction of its own.
	how, ours string
	// theirs does the same with the Go driver; errors are the servers' matter,
	// and both drivers get the same.
	theirs func(o official)
}

// official is the Go driver's side.
type official struct {
	ctx    context.Context
	client *mongo.Client
	db     *mongo.Database
	coll   *mongo.Collection
}

// all reads a cursor to its end.
func (o official) all(k *mongo.Cursor, err error) {
	if err == nil {
		_ = k.All(o.ctx, new([]bson.Raw))
	}
}

func (o official) hang(s interface{ Close(context.Context) error }, err error) {
	if err == nil {
		_ = s.Close(o.ctx)
	}
}

// transact does something in a transaction of its own session.
func (o official) transact(do func(official), end func(*mongo.Session, context.Context) error) {
	s, err := o.client.StartSession()
	if err != nil || s.StartTransaction() != nil {
		return
	}
	defer s.EndSession(o.ctx)
	in := o
	in.ctx = mongo.NewSessionContext(o.ctx, s)
	do(in)
	_ = end(s, o.ctx)
}

// wireReads and wireWrites are the table; the last write leaves the collection
// as it was.
func wireReads() []wireOp {
	none, match, sessions := bson.D{}, bson.A{d("$match", d())}, bson.A{d("$listLocalSessions", d())}
	find, aggregate := options.Find, options.Aggregate
	return []wireOp{
		{"find", "", `find`, func(o official) { o.all(o.coll.Find(o.ctx, none)) }},
		{"findBatches", "", `find {"batchSize":2}`, func(o official) { o.all(o.coll.Find(o.ctx, none, find().SetBatchSize(2))) }},
		{"findLimit", "", `find {"limit":4,"batchSize":3}`, func(o official) { o.all(o.coll.Find(o.ctx, none, find().SetBatchSize(3).SetLimit(4))) }},
		{"findNegative", "", `find {"limit":-2}`, func(o official) { o.all(o.coll.Find(o.ctx, none, find().SetLimit(-2))) }},
		{"findOne", "", `collection.findOne {"filter":{}}`, func(o official) { _, _ = o.coll.FindOne(o.ctx, none).Raw() }},
		{"aggregate", "", `collection.aggregate {"pipeline":[{"$match":{}}],"batchSize":2}`,
			func(o official) { o.all(o.coll.Aggregate(o.ctx, match, aggregate().SetBatchSize(2))) }},
		{"aggregateDatabase", "", `database.aggregate {"pipeline":[{"$listLocalSessions":{}}]}`,
			func(o official) { o.all(o.db.Aggregate(o.ctx, sessions)) }},
		{"countDocuments", "", `collection.countDocuments {"filter":{}}`, func(o official) { _, _ = o.coll.CountDocuments(o.ctx, none) }},
		{"estimatedDocumentCount", "", `collection.estimatedDocumentCount`, func(o official) { _, _ = o.coll.EstimatedDocumentCount(o.ctx) }},
		{"distinct", "", `collection.distinct {"fieldName":"_id","filter":{}}`, func(o official) { _ = o.coll.Distinct(o.ctx, "_id", none) }},
		{"listDatabases", "", `client.listDatabases`, func(o official) { _, _ = o.client.ListDatabases(o.ctx, none) }},
		{"listDatabaseNames", "", `client.listDatabaseNames`, func(o official) { _, _ = o.client.ListDatabaseNames(o.ctx, none) }},
		{"listCollections", "", `database.listCollections`, func(o official) { o.all(o.db.ListCollections(o.ctx, none)) }},
		{"listCollectionNames", "", `database.listCollectionNames`, func(o official) { _, _ = o.db.ListCollectionNames(o.ctx, none) }},
		{"listIndexes", "", `collection.listIndexes`, func(o official) { o.all(o.coll.Indexes().List(o.ctx)) }},
		{"watch", "save", `watch`, func(o official) { o.hang(o.coll.Watch(o.ctx, bson.A{})) }},
		{"watchDatabase", "save", `database.createChangeStream {"pipeline":[]}`, func(o official) { o.hang(o.db.Watch(o.ctx, bson.A{})) }},
		{"watchClient", "save", `client.createChangeStream {"pipeline":[]}`, func(o official) { o.hang(o.client.Watch(o.ctx, bson.A{})) }},
		{"cursorClose", "save", `cursor {"batchSize":2}`, func(o official) { o.hang(o.coll.Find(o.ctx, none, find().SetBatchSize(2))) }},
		{"runCommand", "", `ping`, func(o official) { _ = o.db.RunCommand(o.ctx, d("ping", 1)) }},
		{"runCursorCommand", "", `database.runCursorCommand {"commandName":"find","batchSize":2,"command":{"find":"coll","batchSize":2}}`,
			func(o official) {
				k, err := o.db.RunCommandCursor(o.ctx, d("find", "coll", "batchSize", 2))
				if err == nil {
					k.SetBatchSize(2)
				}
				o.all(k, err)
			}},
	}
}

func wireWrites() []wireOp {
	set := d("$set", d("a", 1))
	id := func(n int) bson.D { return d("_id", n) }
	return []wireOp{
		{"out", "", `collection.aggregate {"pipeline":[{"$match":{}},{"$out":"out"}]}`,
			func(o official) { o.all(o.coll.Aggregate(o.ctx, bson.A{d("$match", d()), d("$out", "out")})) }},
		{"insertOne", "", `insert {"document":{"_id":10}}`, func(o official) { _, _ = o.coll.InsertOne(o.ctx, id(10)) }},
		{"insertMany", "", `insertMany {"documents":[{"_id":11},{"_id":12}]}`, func(o official) { _, _ = o.coll.InsertMany(o.ctx, bson.A{id(11), id(12)}) }},
		{"insertUnordered", "", `insertMany {"documents":[{"_id":13},{"_id":13},{"_id":14}],"ordered":false}`, func(o official) {
			_, _ = o.coll.InsertMany(o.ctx, bson.A{id(13), id(13), id(14)}, options.InsertMany().SetOrdered(false))
		}},
		{"updateOne", "", `collection.updateOne {"filter":{"_id":10},"update":{"$set":{"a":1}},"upsert":true}`,
			func(o official) { _, _ = o.coll.UpdateOne(o.ctx, id(10), set, options.UpdateOne().SetUpsert(true)) }},
		{"updateMany", "", `updateMany {"filter":{"_id":11}}`, func(o official) { _, _ = o.coll.UpdateMany(o.ctx, id(11), set) }},
		{"replaceOne", "", `collection.replaceOne {"filter":{"_id":11},"replacement":{"b":1}}`,
			func(o official) { _, _ = o.coll.ReplaceOne(o.ctx, id(11), d("b", 1)) }},
		{"deleteOne", "", `collection.deleteOne {"filter":{"_id":10}}`, func(o official) { _, _ = o.coll.DeleteOne(o.ctx, id(10)) }},
		{"findOneAndUpdate", "", `collection.findOneAndUpdate {"filter":{"_id":11},"update":{"$set":{"a":1}},"returnDocument":"After"}`,
			func(o official) {
				_ = o.coll.FindOneAndUpdate(o.ctx, id(11), set, options.FindOneAndUpdate().SetReturnDocument(options.After))
			}},
		{"findOneAndReplace", "", `collection.findOneAndReplace {"filter":{"_id":11},"replacement":{"c":1}}`,
			func(o official) { _ = o.coll.FindOneAndReplace(o.ctx, id(11), d("c", 1)) }},
		{"findOneAndDelete", "", `collection.findOneAndDelete {"filter":{"_id":11}}`, func(o official) { _ = o.coll.FindOneAndDelete(o.ctx, id(11)) }},
		{"bulkWrite", "", `collection.bulkWrite {"requests":[{"insertOne":{"document":{"_id":15}}},
			{"updateOne":{"filter":{"_id":15},"update":{"$set":{"a":1}}}},{"deleteOne":{"filter":{"_id":15}}}]}`,
			func(o official) {
				_, _ = o.coll.BulkWrite(o.ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(id(15)),
					mongo.NewUpdateOneModel().SetFilter(id(15)).SetUpdate(set), mongo.NewDeleteOneModel().SetFilter(id(15))})
			}},
		{"clientBulkWrite", "", `clientBulk {"models":[{"insertOne":{"namespace":"db.coll","document":{"_id":16}}},
			{"deleteOne":{"namespace":"db.coll","filter":{"_id":16}}}]}`,
			func(o official) {
				_, _ = o.client.BulkWrite(o.ctx, []mongo.ClientBulkWrite{
					{Database: "db", Collection: "coll", Model: mongo.NewClientInsertOneModel().SetDocument(id(16))},
					{Database: "db", Collection: "coll", Model: mongo.NewClientDeleteOneModel().SetFilter(id(16))}})
			}},
		{"commitTransaction", "commit", `insert {"document":{"_id":17}}`, func(o official) {
			o.transact(func(o official) { _, _ = o.coll.InsertOne(o.ctx, id(17)) }, (*mongo.Session).CommitTransaction)
		}},
		{"abortTransaction", "abort", `find {"batchSize":2}`, func(o official) {
			o.transact(func(o official) { o.all(o.coll.Find(o.ctx, d(), options.Find().SetBatchSize(2))) }, (*mongo.Session).AbortTransaction)
		}},
		{"createCollection", "", `create`, func(o official) { _ = o.db.CreateCollection(o.ctx, "made") }},
		{"createIndex", "", `collection.createIndex {"keys":{"a":1},"name":"a_1"}`, func(o official) {
			_, _ = o.coll.Indexes().CreateOne(o.ctx, mongo.IndexModel{Keys: d("a", 1), Options: options.Index().SetName("a_1")})
		}},
		{"dropIndex", "", `collection.dropIndex {"name":"a_1"}`, func(o official) { _ = o.coll.Indexes().DropOne(o.ctx, "a_1") }},
		{"dropCollection", "", `database.dropCollection {"collection":"made"}`, func(o official) { _ = o.db.Collection("made").Drop(o.ctx) }},
		{"dropDatabase", "", `dropDatabase {"database":"made"}`, func(o official) { _ = o.client.Database("made").Drop(o.ctx) }},
		{"deleteMany", "", `collection.deleteMany {"filter":{"_id":{"$gte":10}}}`,
			func(o official) { _, _ = o.coll.DeleteMany(o.ctx, d("_id", d("$gte", 10))) }},
	}
}
