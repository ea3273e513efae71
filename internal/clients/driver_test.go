package clients

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

const goDatabase = "clients_go"

// goSteps are the steps with the Go driver's public API.
var goSteps = map[string]func(*goClient){
	"connects":                  (*goClient).connects,
	"insertMany":                (*goClient).insertMany,
	"insertOverSeveralCommands": (*goClient).insertOverSeveralCommands,
	"types":                     (*goClient).types,
	"updateOne":                 (*goClient).updateOne,
	"bulkWrite":                 (*goClient).bulkWrite,
	"clientBulkWrite":           (*goClient).clientBulkWrite,
	"find":                      (*goClient).find,
	"aggregate":                 (*goClient).aggregate,
	"countAndDistinct":          (*goClient).countAndDistinct,
	"indexes":                   (*goClient).indexes,
	"collectionsAndDatabases":   (*goClient).collectionsAndDatabases,
	"diagnostics":               (*goClient).diagnostics,
	"getMore":                   (*goClient).getMore,
	"sessions":                  (*goClient).sessions,
	"transactions":              (*goClient).transactions,
	"gridFS":                    (*goClient).gridFS,
	"changeStream":              (*goClient).changeStream,
	"compressors":               (*goClient).compressors,
	"failCommandWithCode":       (*goClient).failCommandWithCode,
	"failCommandRetriedRead":    (*goClient).failCommandRetriedRead,
	"failCommandRetriedWrite":   (*goClient).failCommandRetriedWrite,
	"failCommandBlocks":         (*goClient).failCommandBlocks,
	"failCommandOfApplication":  (*goClient).failCommandOfApplication,
	"failCommandOfNamespace":    (*goClient).failCommandOfNamespace,
	"failPointRefused":          (*goClient).failPointRefused,
	"authentication":            (*goClient).authentication,
	"encryption":                (*goClient).encryption,
}

// goDriver does the steps with the Go driver, in this process.
func goDriver(t *testing.T, s *served, names ...string) report {
	t.Helper()
	if len(names) == 0 {
		names = stepNames
	}
	c := &goClient{t: t, s: s, ctx: deadline(t), sent: &sent{}}
	defer s.disconnect()
	c.client = s.connect(t, s.uri, c.monitored)
	c.single = s.connect(t, s.single)
	var out strings.Builder
	for _, name := range names {
		line, ok := c.step(name)
		out.WriteString(line + "\n")
		if !ok {
			return newReport(out.String(), "", errors.New("a step failed"))
		}
	}
	return newReport(out.String()+"done with the Go driver\n", "", nil)
}

// goClient does steps. A step that fails panics with a failure, one that does
// not apply with a skip; the method step turns both into a line.
type goClient struct {
	t              *testing.T
	s              *served
	ctx            context.Context
	client, single *mongo.Client
	sent           *sent
}

type (
	failure string
	skip    string
)

func (c *goClient) step(name string) (line string, ok bool) {
	begin := time.Now()
	defer func() {
		switch why := recover().(type) {
		case nil:
		case failure:
			line, ok = fmt.Sprintf("FAILED %s: %s", name, why), false
		case skip:
			line, ok = fmt.Sprintf("skip %s: %s", name, why), true
		default:
			panic(why)
		}
	}()
	goSteps[name](c)
	return fmt.Sprintf("ok %s %.3fs", name, time.Since(begin).Seconds()), true
}

func fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func equal(got, want any, what string) {
	if !reflect.DeepEqual(got, want) {
		fail("%s: got %v, want %v", what, got, want)
	}
}

func good(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

// must is good for calls with a result.
func must[T any](v T, err error) T {
	good(err, fmt.Sprintf("call that gives %T", v))
	return v
}

// failed wants an error with a code of the server.
func failed(err error, code int, what string) mongo.ServerError {
	var e mongo.ServerError
	if !errors.As(err, &e) || !e.HasErrorCode(code) {
		fail("%s: got %v, want code %d", what, err, code)
	}
	return e
}

func d(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

// connect makes a client of a server, which disconnect closes; the end of
// the test does so, too.
func (s *served) connect(t *testing.T, uri string, change ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetServerSelectionTimeout(patience / 2)
	if s.caFile != "" {
		pem, err := os.ReadFile(s.caFile)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		o.SetTLSConfig(&tls.Config{RootCAs: roots})
	}
	for _, f := range change {
		f(o)
	}
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	if s.clients == nil {
		t.Cleanup(s.disconnect)
	}
	s.clients = append(s.clients, client)
	return client
}

// disconnect closes the clients. Those of a server that is gone have no one to
// say goodbye to.
func (s *served) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	for _, client := range s.clients {
		_ = client.Disconnect(ctx)
	}
	s.clients = nil
}

// sent remembers commands.
type sent struct {
	mu       sync.Mutex
	commands []*event.CommandStartedEvent
}

func (s *sent) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = nil
}

func (s *sent) named(name string) []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []bson.Raw
	for _, e := range s.commands {
		if name == "" || e.CommandName == name {
			out = append(out, e.Command)
		}
	}
	return out
}

func (c *goClient) monitored(o *options.ClientOptions) {
	o.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		c.sent.mu.Lock()
		defer c.sent.mu.Unlock()
		kept := *e
		kept.Command = slices.Clone(e.Command)
		c.sent.commands = append(c.sent.commands, &kept)
	}})
}

func (c *goClient) database() *mongo.Database { return c.client.Database(goDatabase) }

// fresh is a collection that holds these documents alone.
func (c *goClient) fresh(name string, documents ...any) *mongo.Collection {
	collection := c.database().Collection(name)
	good(collection.Drop(c.ctx), "drop "+name)
	if len(documents) > 0 {
		must(collection.InsertMany(c.ctx, documents))
	}
	return collection
}

// numbered are n documents with _id 0 and up.
func numbered(n int, fields func(i int) bson.D) []any {
	out := make([]any, n)
	for i := range out {
		doc := d("_id", int32(i))
		if fields != nil {
			doc = append(doc, fields(i)...)
		}
		out[i] = doc
	}
	return out
}

func (c *goClient) count(collection *mongo.Collection, filter any) int64 {
	return must(collection.CountDocuments(c.ctx, filter))
}

func (c *goClient) one(collection *mongo.Collection, filter any) bson.D {
	var out bson.D
	good(collection.FindOne(c.ctx, filter).Decode(&out), "findOne")
	return out
}

func (c *goClient) all(cursor *mongo.Cursor, err error) []bson.D {
	good(err, "cursor")
	out := []bson.D{}
	good(cursor.All(c.ctx, &out), "reading the cursor")
	return out
}

func (c *goClient) notStandalone() {
	if c.s.topology == "single" {
		panic(skip("a standalone has none"))
	}
}

func (c *goClient) from(version string) bool { return !less(c.s.version, version) }

func values(docs []bson.D, field string) []any {
	out := []any{}
	for _, doc := range docs {
		for _, e := range doc {
			if e.Key == field {
				out = append(out, e.Value)
			}
		}
	}
	return out
}

func (c *goClient) hello(preference *readpref.ReadPref) bson.M {
	var reply bson.M
	o := options.RunCmd().SetReadPreference(preference)
	good(c.client.Database("admin").RunCommand(c.ctx, d("hello", 1), o).Decode(&reply), "hello")
	return reply
}

func (c *goClient) connects() {
	good(c.client.Ping(c.ctx, readpref.Primary()), "ping")
	hello := c.hello(readpref.Primary())
	kinds := map[string][2]any{
		"single": {}, "replicaset": {"rs0", nil}, "sharded": {nil, "isdbgrid"}, "load-balanced": {nil, "isdbgrid"},
	}
	equal([2]any{hello["setName"], hello["msg"]}, kinds[c.s.topology], "setName and msg")
	var build struct{ Version string }
	good(c.client.Database("admin").RunCommand(c.ctx, d("buildInfo", 1)).Decode(&build), "buildInfo")
	equal(strings.HasPrefix(build.Version, c.s.version+"."), true, "version "+build.Version)
	if c.s.topology == "replicaset" {
		equal(c.hello(readpref.Secondary())["secondary"], true, "secondary that was read from")
	}
}

func (c *goClient) insertMany() {
	collection := c.fresh("inserted")
	c.sent.clear()
	r := must(collection.InsertMany(c.ctx, numbered(250, func(i int) bson.D { return d("x", i*11) })))
	equal(len(r.InsertedIDs), 250, "ids")
	equal(c.count(collection, bson.D{}), int64(250), "documents")
	inserts := c.sent.named("insert")
	equal(len(inserts), 1, "insert sent")
	_, err := inserts[0].LookupErr("txnNumber")
	equal(err == nil, c.s.topology != "single", "txnNumber sent")
	_, err = collection.InsertOne(c.ctx, d("_id", 3))
	failed(err, 11000, "a second _id")
}

func (c *goClient) insertOverSeveralCommands() {
	collection := c.fresh("large")
	big := strings.Repeat("x", 1<<20)
	c.sent.clear()
	must(collection.InsertMany(c.ctx, numbered(50, func(int) bson.D { return d("big", big) })))
	if len(c.sent.named("insert")) < 2 {
		fail("it went in one message")
	}
	equal(c.count(collection, bson.D{}), int64(50), "documents")
	read := 0
	for _, v := range values(c.all(collection.Find(c.ctx, bson.D{})), "big") {
		read += len(v.(string))
	}
	equal(read, 50<<20, "bytes read")
	good(collection.Drop(c.ctx), "drop")
}

func (c *goClient) types() {
	decimal := must(bson.ParseDecimal128("1.10"))
	doc := d("_id", bson.NewObjectID(), "double", 1.5, "long", int64(1)<<60, "int", int32(7), "text", "grüße 🙂\x00",
		"binary", bson.Binary{Data: []byte{0, 255}}, "uuid", bson.Binary{Subtype: 4, Data: bytes.Repeat([]byte{5}, 16)},
		"date", bson.DateTime(1770091506789), "true", true, "null", nil, "regex", bson.Regex{Pattern: "^a", Options: "i"},
		"timestamp", bson.Timestamp{T: 5, I: 6}, "decimal", decimal, "min", bson.MinKey{}, "max", bson.MaxKey{},
		"code", bson.JavaScript("f"), "nested", d("list", bson.A{int32(1), bson.A{int32(2), d("three", int32(3))}}, "empty", bson.D{}))
	collection := c.fresh("types", doc)
	equal(c.one(collection, bson.D{}), doc, "document")
	kinds := d("_id", 0, "long", d("$type", "$long"), "decimal", d("$type", "$decimal"), "uuid", d("$type", "$uuid"))
	got := map[string]string{}
	for _, e := range c.all(collection.Aggregate(c.ctx, bson.A{d("$project", kinds)}))[0] {
		got[e.Key] = e.Value.(string)
	}
	equal(got, map[string]string{"long": "long", "decimal": "decimal", "uuid": "binData"}, "$type")
}

func (c *goClient) updateOne() {
	collection := c.fresh("updated", d("_id", 1, "x", 1, "tags", bson.A{"a"}), d("_id", 2, "x", 1, "tags", bson.A{}))
	r := must(collection.UpdateOne(c.ctx, d("_id", 1), d("$set", d("y", 2), "$inc", d("x", 4), "$push", d("tags", "b"))))
	equal([2]int64{r.MatchedCount, r.ModifiedCount}, [2]int64{1, 1}, "updateOne")
	equal(c.one(collection, d("_id", 1)), d("_id", int32(1), "x", int32(5), "tags", bson.A{"a", "b"}, "y", int32(2)), "updated")
	r = must(collection.UpdateMany(c.ctx, bson.D{}, d("$mul", d("x", 10))))
	equal([2]int64{r.MatchedCount, r.ModifiedCount}, [2]int64{2, 2}, "updateMany")
	r = must(collection.UpdateOne(c.ctx, d("_id", 9), d("$set", d("z", 1), "$setOnInsert", d("fresh", true)), options.UpdateOne().SetUpsert(true)))
	equal([2]any{r.MatchedCount, r.UpsertedID}, [2]any{int64(0), int32(9)}, "upsert")
	must(collection.UpdateOne(c.ctx, d("_id", 2), bson.A{d("$set", d("double", d("$multiply", bson.A{"$x", 2})))}))
	equal(values([]bson.D{c.one(collection, d("_id", 2))}, "double"), []any{int32(20)}, "update by pipeline")
	must(collection.ReplaceOne(c.ctx, d("_id", 2), d("only", "this")))
	equal(c.one(collection, d("_id", 2)), d("_id", int32(2), "only", "this"), "replaced")
	var after struct{ Z int }
	o := options.FindOneAndUpdate().SetReturnDocument(options.After)
	good(collection.FindOneAndUpdate(c.ctx, d("_id", 9), d("$set", d("z", 2)), o).Decode(&after), "findOneAndUpdate")
	equal(after.Z, 2, "after")
	good(collection.FindOneAndDelete(c.ctx, d("_id", 9)).Err(), "findOneAndDelete")
	equal(must(collection.DeleteMany(c.ctx, bson.D{})).DeletedCount, int64(2), "deleteMany")
	_, err := collection.UpdateOne(c.ctx, bson.D{}, d("$nosuch", d("a", 1)))
	failed(err, 9, "an unknown modifier")
}

func (c *goClient) bulkWrite() {
	collection := c.fresh("bulk", d("_id", 1), d("_id", 2))
	r := must(collection.BulkWrite(c.ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(d("_id", 3)),
		mongo.NewUpdateOneModel().SetFilter(d("_id", 1)).SetUpdate(d("$set", d("x", 1))),
		mongo.NewUpdateOneModel().SetFilter(d("_id", 4)).SetUpdate(d("$set", d("x", 1))).SetUpsert(true),
		mongo.NewReplaceOneModel().SetFilter(d("_id", 2)).SetReplacement(d("y", 1)),
		mongo.NewDeleteOneModel().SetFilter(d("_id", 3)),
	}))
	equal([]int64{r.InsertedCount, r.MatchedCount, r.ModifiedCount, r.DeletedCount}, []int64{1, 2, 2, 1}, "counts")
	equal(r.UpsertedIDs, map[int64]any{2: int32(4)}, "upserted")
	var models []mongo.WriteModel
	for _, id := range []int{1, 20, 2, 21} {
		models = append(models, mongo.NewInsertOneModel().SetDocument(d("_id", id)))
	}
	_, err := collection.BulkWrite(c.ctx, models, options.BulkWrite().SetOrdered(false))
	var e mongo.BulkWriteException
	if !errors.As(err, &e) || len(e.WriteErrors) != 2 {
		fail("duplicates: %v", err)
	}
	equal([]int{e.WriteErrors[0].Index, e.WriteErrors[1].Index}, []int{0, 2}, "indexes of writeErrors")
	equal(c.count(collection, bson.D{}), int64(5), "documents")
}

func (c *goClient) clientBulkWrite() {
	if !c.from("8.0") {
		panic(skip("the command bulkWrite came with 8.0"))
	}
	collection := c.fresh("bulk_of_client", d("_id", 1))
	const name = "bulk_of_client"
	r := must(c.client.BulkWrite(c.ctx, []mongo.ClientBulkWrite{
		{Database: goDatabase, Collection: name, Model: mongo.NewClientInsertOneModel().SetDocument(d("_id", 2))},
		{Database: goDatabase, Collection: name, Model: mongo.NewClientUpdateOneModel().SetFilter(d("_id", 1)).SetUpdate(d("$set", d("x", 1)))},
		{Database: goDatabase, Collection: name + "_too", Model: mongo.NewClientInsertOneModel().SetDocument(d("_id", 1))},
		{Database: goDatabase, Collection: name, Model: mongo.NewClientDeleteOneModel().SetFilter(d("_id", 2))},
	}, options.ClientBulkWrite().SetVerboseResults(true)))
	equal([]int64{r.InsertedCount, r.ModifiedCount, r.DeletedCount}, []int64{2, 1, 1}, "counts")
	equal(c.all(collection.Find(c.ctx, bson.D{})), []bson.D{d("_id", int32(1), "x", int32(1))}, "documents")
	good(c.database().Collection(name+"_too").Drop(c.ctx), "drop")
}

func (c *goClient) find() {
	collection := c.fresh("found", numbered(12, func(i int) bson.D { return d("x", i%3, "in", d("y", bson.A{i, i + 1})) })...)
	o := options.Find().SetProjection(d("x", 1)).SetSort(d("x", -1, "_id", 1)).SetSkip(1).SetLimit(4)
	got := c.all(collection.Find(c.ctx, d("x", d("$gt", 0)), o))
	equal(values(got, "_id"), []any{int32(5), int32(8), int32(11), int32(1)}, "_id")
	equal(len(got[0]), 2, "fields")
	equal(values(c.all(collection.Find(c.ctx, d("in.y", 5))), "_id"), []any{int32(4), int32(5)}, "by an element of a nested array")
	equal(c.count(collection, d("$or", bson.A{d("_id", d("$in", bson.A{1, 2})), d("x", d("$exists", false))})), int64(2), "$or, $in, $exists")
	equal(c.count(collection, d("$expr", d("$eq", bson.A{"$_id", "$x"}))), int64(3), "$expr")
	equal(collection.FindOne(c.ctx, d("_id", bson.Regex{Pattern: "^a"})).Err(), mongo.ErrNoDocuments, "no match")
	failed(collection.FindOne(c.ctx, d("x", d("$nosuch", 1))).Err(), 2, "an unknown operator")
}

func (c *goClient) aggregate() {
	collection := c.fresh("aggregated", numbered(10, func(i int) bson.D { return d("kind", []string{"even", "odd"}[i%2], "n", i) })...)
	got := c.all(collection.Aggregate(c.ctx, bson.A{
		d("$match", d("n", d("$gte", 3))),
		d("$group", d("_id", "$kind", "sum", d("$sum", "$n"), "all", d("$push", "$n"))),
		d("$sort", d("_id", 1)),
		d("$project", d("_id", 0, "kind", "$_id", "sum", 1, "many", d("$size", "$all"))),
	}))
	want := []bson.D{d("sum", int32(18), "kind", "even", "many", int32(3)), d("sum", int32(24), "kind", "odd", "many", int32(4))}
	equal(got, want, "groups")
	got = c.all(collection.Aggregate(c.ctx, bson.A{
		d("$match", d("_id", d("$lt", 2))),
		d("$lookup", d("from", "aggregated", "localField", "kind", "foreignField", "kind", "as", "same")),
		d("$unwind", "$same"),
		d("$count", "pairs"),
	}))
	equal(got, []bson.D{d("pairs", int32(10))}, "$lookup, $unwind, $count")
	c.all(collection.Aggregate(c.ctx, bson.A{d("$match", d("n", d("$lt", 3))), d("$out", "aggregated_out")}))
	out := c.database().Collection("aggregated_out")
	equal(c.count(out, bson.D{}), int64(3), "$out")
	good(out.Drop(c.ctx), "drop")
	_, err := collection.Aggregate(c.ctx, bson.A{d("$nosuch", bson.D{})})
	failed(err, 40324, "an unknown stage")
}

func (c *goClient) countAndDistinct() {
	collection := c.fresh("counted", numbered(7, func(i int) bson.D { return d("x", i%3, "t", bson.A{"a", "b"}) })...)
	equal(c.count(collection, d("x", 0)), int64(3), "countDocuments")
	equal(must(collection.EstimatedDocumentCount(c.ctx)), int64(7), "estimatedDocumentCount")
	var numbers []int
	good(collection.Distinct(c.ctx, "x", bson.D{}).Decode(&numbers), "distinct")
	slices.Sort(numbers)
	equal(numbers, []int{0, 1, 2}, "distinct")
	var texts []string
	good(collection.Distinct(c.ctx, "t", d("x", 1)).Decode(&texts), "distinct")
	equal(texts, []string{"a", "b"}, "distinct of arrays")
}

func (c *goClient) indexes() {
	collection := c.fresh("indexed", d("_id", 1, "x", 1))
	view := collection.Indexes()
	equal(must(view.CreateOne(c.ctx, mongo.IndexModel{Keys: d("x", 1), Options: options.Index().SetUnique(true)})), "x_1", "name")
	names := must(view.CreateMany(c.ctx, []mongo.IndexModel{
		{Keys: d("a", 1, "b", -1)}, {Keys: d("e", 1), Options: options.Index().SetName("expiry").SetExpireAfterSeconds(60)},
	}))
	equal(names, []string{"a_1_b_-1", "expiry"}, "names")
	listed := must(view.ListSpecifications(c.ctx))
	equal(len(listed), 4, "listed")
	equal(*listed[1].Unique, true, "unique")
	equal(*listed[3].ExpireAfterSeconds, int32(60), "expireAfterSeconds")
	_, err := collection.InsertOne(c.ctx, d("x", 1))
	failed(err, 11000, "a second x")
	good(view.DropOne(c.ctx, "x_1"), "dropIndexes")
	must(collection.InsertOne(c.ctx, d("x", 1)))
	equal(len(must(view.ListSpecifications(c.ctx))), 3, "after one was dropped")
}

func (c *goClient) collectionsAndDatabases() {
	database := c.client.Database("clients_go_listed")
	good(database.Drop(c.ctx), "dropDatabase")
	good(database.CreateCollection(c.ctx, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)), "create")
	must(database.Collection("plain").InsertOne(c.ctx, bson.D{}))
	good(database.CreateView(c.ctx, "seen", "plain", bson.A{d("$match", bson.D{})}), "create a view")
	kinds := map[string]string{}
	for _, s := range must(database.ListCollectionSpecifications(c.ctx, bson.D{})) {
		kinds[s.Name] = s.Type
	}
	delete(kinds, "system.views")
	equal(kinds, map[string]string{"capped": "collection", "plain": "collection", "seen": "view"}, "collections")
	equal(c.count(database.Collection("seen"), bson.D{}), int64(1), "documents of the view")
	equal(must(database.ListCollectionNames(c.ctx, d("name", "plain"))), []string{"plain"}, "filtered")
	equal(slices.Contains(must(c.client.ListDatabaseNames(c.ctx, bson.D{})), "clients_go_listed"), true, "listed")
	failed(database.CreateCollection(c.ctx, "plain", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)), 48, "creating it again, otherwise")
	good(database.Drop(c.ctx), "dropDatabase")
	equal(len(must(database.ListCollectionNames(c.ctx, bson.D{}))), 0, "after dropDatabase")
}

func (c *goClient) diagnostics() {
	c.fresh("measured", d("_id", 1))
	run := func(database, name string, value any) bson.M {
		var reply bson.M
		good(c.client.Database(database).RunCommand(c.ctx, d(name, value)).Decode(&reply), name)
		return reply
	}
	equal(run(goDatabase, "collStats", "measured")["count"], int32(1), "collStats")
	equal(run(goDatabase, "dbStats", 1)["ok"], 1.0, "dbStats")
	equal(run("admin", "serverStatus", 1)["connections"] != nil, true, "serverStatus")
	failed(c.database().RunCommand(c.ctx, d("noSuchCommand", 1)).Err(), 59, "an unknown command")
}

func (c *goClient) getMore() {
	collection := c.fresh("batches", numbered(10, nil)...)
	c.sent.clear()
	got := c.all(collection.Find(c.ctx, bson.D{}, options.Find().SetBatchSize(3).SetSort(d("_id", 1))))
	equal(len(got), 10, "documents")
	equal(len(c.sent.named("getMore")), 3, "getMore sent")
	c.sent.clear()
	got = c.all(collection.Aggregate(c.ctx, bson.A{d("$match", bson.D{})}, options.Aggregate().SetBatchSize(4)))
	equal(len(got), 10, "documents of aggregate")
	equal(len(c.sent.named("getMore")), 2, "getMore sent for aggregate")
	cursor := must(collection.Find(c.ctx, bson.D{}, options.Find().SetBatchSize(2)))
	equal(cursor.Next(c.ctx), true, "a first document")
	c.sent.clear()
	good(cursor.Close(c.ctx), "close")
	equal(len(c.sent.named("killCursors")), 1, "killCursors sent")
	// Through one server: another mongos does not know the cursor.
	database := c.single.Database(goDatabase)
	session := must(c.single.StartSession())
	defer session.EndSession(c.ctx)
	ctx := mongo.NewSessionContext(c.ctx, session)
	cursor = must(database.Collection("batches").Find(ctx, bson.D{}, options.Find().SetBatchSize(2)))
	good(database.RunCommand(ctx, d("killCursors", "batches", "cursors", bson.A{cursor.ID()})).Err(), "killCursors")
	equal([3]bool{cursor.Next(ctx), cursor.Next(ctx), cursor.Next(ctx)}, [3]bool{true, true, false}, "documents of a killed cursor")
	failed(cursor.Err(), 43, "getMore of a killed cursor")
}

func (c *goClient) sessions() {
	collection := c.fresh("sessions")
	session := must(c.client.StartSession(options.Session().SetCausalConsistency(c.s.topology != "single")))
	defer session.EndSession(c.ctx)
	ctx := mongo.NewSessionContext(c.ctx, session)
	c.sent.clear()
	must(collection.InsertOne(ctx, d("_id", 1)))
	good(collection.FindOne(ctx, bson.D{}).Err(), "findOne")
	for _, command := range c.sent.named("") {
		equal(bson.Raw(command.Lookup("lsid").Document()), session.ID(), "lsid sent")
	}
	if c.s.topology == "single" {
		return
	}
	_, err := c.sent.named("find")[0].LookupErr("readConcern", "afterClusterTime")
	good(err, "afterClusterTime")
	majority := c.database().Collection("sessions", options.Collection().SetReadConcern(readconcern.Majority()).SetWriteConcern(writeconcern.Majority()))
	must(majority.InsertOne(ctx, d("_id", 2)))
	equal(must(majority.CountDocuments(ctx, bson.D{})), int64(2), "majority")
	if !c.from("5.0") {
		return
	}
	snapshot := must(c.client.StartSession(options.Session().SetSnapshot(true)))
	defer snapshot.EndSession(c.ctx)
	equal(must(collection.CountDocuments(mongo.NewSessionContext(c.ctx, snapshot), bson.D{})), int64(2), "snapshot")
}

func (c *goClient) transactions() {
	c.notStandalone()
	collection := c.fresh("transactions", d("_id", 0))
	session := must(c.client.StartSession())
	defer session.EndSession(c.ctx)
	ctx := mongo.NewSessionContext(c.ctx, session)
	good(session.StartTransaction(), "startTransaction")
	must(collection.InsertOne(ctx, d("_id", 1)))
	equal(must(collection.CountDocuments(ctx, bson.D{})), int64(2), "seen inside")
	equal(c.count(collection, bson.D{}), int64(1), "seen outside")
	good(session.CommitTransaction(c.ctx), "commitTransaction")
	equal(c.count(collection, bson.D{}), int64(2), "after commit")
	o := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())
	good(session.StartTransaction(o), "startTransaction")
	must(collection.DeleteMany(ctx, bson.D{}))
	good(session.AbortTransaction(c.ctx), "abortTransaction")
	equal(c.count(collection, bson.D{}), int64(2), "after abort")
	increment := d("$inc", d("x", 1))
	must(session.WithTransaction(c.ctx, func(ctx context.Context) (any, error) { return collection.UpdateOne(ctx, d("_id", 0), increment) }))
	equal(c.count(collection, d("x", 1)), int64(1), "after withTransaction")
	good(session.StartTransaction(), "startTransaction")
	must(collection.UpdateOne(ctx, d("_id", 0), increment))
	other := must(c.client.StartSession())
	defer other.EndSession(c.ctx)
	good(other.StartTransaction(), "startTransaction")
	_, err := collection.UpdateOne(mongo.NewSessionContext(c.ctx, other), d("_id", 0), increment)
	e := failed(err, 112, "a write against another transaction's")
	equal(e.HasErrorLabel("TransientTransactionError"), true, "label")
	good(other.AbortTransaction(c.ctx), "abortTransaction")
	good(session.CommitTransaction(c.ctx), "commitTransaction")
}

func (c *goClient) gridFS() {
	c.fresh("fs.files")
	chunks := c.fresh("fs.chunks")
	bucket := c.database().GridFSBucket(options.GridFSBucket().SetChunkSizeBytes(1000))
	content := make([]byte, 4321)
	for i := range content {
		content[i] = byte(i % 251)
	}
	id := must(bucket.UploadFromStream(c.ctx, "file", bytes.NewReader(content), options.GridFSUpload().SetMetadata(d("kind", "test"))))
	var down bytes.Buffer
	must(bucket.DownloadToStream(c.ctx, id, &down))
	equal(bytes.Equal(down.Bytes(), content), true, "content")
	equal(c.count(chunks, bson.D{}), int64(5), "chunks")
	equal(values(c.all(bucket.Find(c.ctx, bson.D{})), "length"), []any{int64(4321)}, "files")
	good(bucket.Rename(c.ctx, id, "renamed"), "rename")
	good(bucket.Delete(c.ctx, id), "delete")
	equal(c.count(chunks, bson.D{}), int64(0), "chunks after delete")
	_, err := bucket.DownloadToStreamByName(c.ctx, "file", &down)
	equal(errors.Is(err, mongo.ErrFileNotFound), true, fmt.Sprint("a deleted file: ", err))
}

func (c *goClient) changeStream() {
	c.notStandalone()
	collection := c.fresh("watched", d("_id", 0))
	next := func(stream *mongo.ChangeStream) (out struct {
		OperationType     string
		FullDocument      bson.D
		UpdateDescription struct{ UpdatedFields bson.D }
	}) {
		ctx, cancel := context.WithTimeout(c.ctx, patience)
		defer cancel()
		if !stream.Next(ctx) {
			fail("no change: %v", stream.Err())
		}
		good(stream.Decode(&out), "decode")
		return out
	}
	stream := must(collection.Watch(c.ctx, bson.A{}, options.ChangeStream().SetMaxAwaitTime(100*time.Millisecond)))
	must(collection.InsertOne(c.ctx, d("_id", 1)))
	must(collection.UpdateOne(c.ctx, d("_id", 1), d("$set", d("x", 2))))
	change := next(stream)
	equal(change.OperationType, "insert", "operationType")
	equal(change.FullDocument, d("_id", int32(1)), "insert")
	token := stream.ResumeToken()
	equal(next(stream).UpdateDescription.UpdatedFields, d("x", int32(2)), "update")
	equal(stream.TryNext(c.ctx), false, "nothing more")
	good(stream.Close(c.ctx), "close")
	must(collection.DeleteOne(c.ctx, d("_id", 1)))
	pipeline := bson.A{d("$match", d("operationType", d("$ne", "update")))}
	stream = must(c.database().Watch(c.ctx, pipeline, options.ChangeStream().SetResumeAfter(token)))
	equal(next(stream).OperationType, "delete", "after the token, filtered")
	good(stream.Close(c.ctx), "close")
	stream = must(c.client.Watch(c.ctx, bson.A{}, options.ChangeStream().SetFullDocument(options.UpdateLookup)))
	must(collection.UpdateOne(c.ctx, d("_id", 0), d("$set", d("y", 1))))
	equal(next(stream).FullDocument, d("_id", int32(0), "y", int32(1)), "updateLookup over the cluster")
	good(stream.Close(c.ctx), "close")
}

func (c *goClient) compressors() {
	collection := c.fresh("compressed", d("_id", 1, "x", strings.Repeat("y", 5000)))
	for _, name := range compressorNames {
		client := c.s.connect(c.t, c.s.uri, func(o *options.ClientOptions) { o.SetCompressors([]string{name}) })
		other := client.Database(goDatabase).Collection("compressed")
		must(other.InsertOne(c.ctx, d("_id", name)))
		equal(must(other.CountDocuments(c.ctx, d("x", strings.Repeat("y", 5000)))), int64(1), name)
	}
	equal(c.count(collection, bson.D{}), int64(4), "documents")
}

// withFailPoint sets failCommand on one server while action runs.
func (c *goClient) withFailPoint(mode any, data bson.D, action func()) {
	set := func(mode any) {
		command := d("configureFailPoint", "failCommand", "mode", mode, "data", data)
		good(c.single.Database("admin").RunCommand(c.ctx, command).Err(), "configureFailPoint")
	}
	set(mode)
	defer set("off")
	c.sent.clear()
	action()
}

// failing is a collection with one document, on a client of its own.
func (c *goClient) failing(name string, change ...func(*options.ClientOptions)) *mongo.Collection {
	client := c.s.connect(c.t, c.s.single, append(change, c.monitored, quickHeartbeat)...)
	collection := client.Database(goDatabase).Collection(name)
	must(collection.DeleteMany(c.ctx, bson.D{}))
	must(collection.InsertOne(c.ctx, d("_id", 1)))
	return collection
}

// quickHeartbeat has a server looked at again soon after an error made it
// Unknown: the driver's monitors do not hear requests for a check while they
// stream, and wait for the next heartbeat.
func quickHeartbeat(o *options.ClientOptions) { o.SetHeartbeatInterval(500 * time.Millisecond) }

func noRetry(o *options.ClientOptions) { o.SetRetryReads(false) }

func (c *goClient) failCommandWithCode() {
	collection := c.failing("failing", noRetry)
	data := d("failCommands", bson.A{"find"}, "errorCode", 8000, "errorLabels", bson.A{"Alpha", "Beta"})
	c.withFailPoint(d("times", 1), data, func() {
		e := failed(collection.FindOne(c.ctx, bson.D{}).Err(), 8000, "find")
		equal([]bool{e.HasErrorLabel("Alpha"), e.HasErrorLabel("Beta"), e.HasErrorLabel("Gamma")}, []bool{true, true, false}, "labels")
		equal(e.HasErrorMessage("failCommand"), true, fmt.Sprint("the message names its reason: ", e))
		equal(c.one(collection, bson.D{}), d("_id", int32(1)), "the next find")
		equal(len(c.sent.named("find")), 2, "find sent")
	})
}

func (c *goClient) failCommandRetriedRead() {
	collection := c.failing("failing")
	c.withFailPoint(d("times", 1), d("failCommands", bson.A{"find"}, "closeConnection", true), func() {
		equal(c.one(collection, bson.D{}), d("_id", int32(1)), "find")
		equal(len(c.sent.named("find")), 2, "find sent")
	})
	c.withFailPoint(d("times", 2), d("failCommands", bson.A{"find"}, "closeConnection", true), func() {
		// With a deadline the driver would go on.
		err := collection.FindOne(context.WithoutCancel(c.ctx), bson.D{}).Err()
		equal(mongo.IsNetworkError(err), true, fmt.Sprint("two closed connections: ", err))
		equal(len(c.sent.named("find")), 2, "find sent")
	})
	c.withFailPoint(d("times", 1), d("failCommands", bson.A{"aggregate"}, "errorCode", 11600), func() {
		equal(len(c.all(collection.Aggregate(c.ctx, bson.A{}))), 1, "aggregate")
		equal(len(c.sent.named("aggregate")), 2, "aggregate sent")
	})
}

func (c *goClient) failCommandRetriedWrite() {
	c.notStandalone()
	collection := c.failing("failing")
	c.withFailPoint(d("times", 1), d("failCommands", bson.A{"insert"}, "closeConnection", true), func() {
		must(collection.InsertOne(c.ctx, d("_id", 2)))
		inserts := c.sent.named("insert")
		equal(len(inserts), 2, "insert sent")
		equal(inserts[0].Lookup("txnNumber").Int64(), inserts[1].Lookup("txnNumber").Int64(), "txnNumber of the retry")
	})
	data := d("failCommands", bson.A{"insert"}, "writeConcernError", d("code", 91, "errmsg", "shutting down"), "errorLabels", bson.A{"RetryableWriteError"})
	c.withFailPoint(d("times", 1), data, func() {
		must(collection.InsertOne(c.ctx, d("_id", 3)))
		equal(len(c.sent.named("insert")), 2, "insert sent after a write concern error")
	})
	equal(c.count(collection, bson.D{}), int64(3), "documents: each once")
	data = d("failCommands", bson.A{"insert"}, "writeConcernError", d("code", 64, "errmsg", "waiting timed out", "errInfo", d("wtimeout", true)))
	c.withFailPoint(d("times", 1), data, func() {
		_, err := collection.InsertOne(c.ctx, d("_id", 4))
		var e mongo.WriteException
		if !errors.As(err, &e) || e.WriteConcernError == nil || e.WriteConcernError.Code != 64 {
			fail("insert: %v", err)
		}
		equal(e.WriteConcernError.Details.Lookup("wtimeout").Boolean(), true, "errInfo")
	})
	equal(c.count(collection, bson.D{}), int64(4), "documents: it was written all the same")
}

func (c *goClient) failCommandBlocks() {
	collection := c.failing("failing")
	find := func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		err := collection.FindOne(ctx, bson.D{}).Err()
		return time.Since(begin), err
	}
	c.withFailPoint(d("times", 1), d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 150), func() {
		took, err := find(c.ctx)
		good(err, "find")
		equal(took >= 150*time.Millisecond, true, fmt.Sprint("150 ms of waiting, seen ", took))
	})
	c.withFailPoint(d("times", 1), d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 3000), func() {
		ctx, cancel := context.WithTimeout(c.ctx, 200*time.Millisecond)
		defer cancel()
		took, err := find(ctx)
		equal(mongo.IsTimeout(err), true, fmt.Sprint("find within 200 ms: ", err))
		equal(took < 2900*time.Millisecond, true, fmt.Sprint("the timeout of 200 ms came after ", took))
	})
}

func (c *goClient) failCommandOfApplication() {
	named := func(name string) func(*options.ClientOptions) {
		return func(o *options.ClientOptions) { o.SetAppName(name) }
	}
	struck, spared := c.failing("failing", noRetry, named("struck")), c.failing("failing", noRetry, named("spared"))
	c.withFailPoint("alwaysOn", d("failCommands", bson.A{"find"}, "errorCode", 8000, "appName", "struck"), func() {
		for range 2 {
			failed(struck.FindOne(c.ctx, bson.D{}).Err(), 8000, "find of the application that is named")
			equal(c.one(spared, bson.D{}), d("_id", int32(1)), "find of another application")
		}
	})
	equal(c.one(struck, bson.D{}), d("_id", int32(1)), "find when it is off")
}

func (c *goClient) failCommandOfNamespace() {
	struck, spared := c.failing("failing", noRetry), c.failing("spared", noRetry)
	data := d("failCommands", bson.A{"find"}, "errorCode", 8000, "namespace", goDatabase+".failing")
	c.withFailPoint(d("skip", 1), data, func() {
		equal(c.one(struck, bson.D{}), d("_id", int32(1)), "find that is skipped")
		equal(c.one(spared, bson.D{}), d("_id", int32(1)), "find elsewhere")
		failed(struck.FindOne(c.ctx, bson.D{}).Err(), 8000, "find after that")
	})
}

func (c *goClient) failPointRefused() {
	admin := c.single.Database("admin")
	failed(admin.RunCommand(c.ctx, d("configureFailPoint", "noSuch", "mode", "off")).Err(), 266, "an unknown fail point")
	failed(admin.RunCommand(c.ctx, d("configureFailPoint", "failCommand", "mode", "x")).Err(), 2, "an unknown mode")
}

func (c *goClient) authentication() {
	if c.s.user == "" {
		panic(skip("access control is off"))
	}
	var status struct {
		AuthInfo struct{ AuthenticatedUsers []struct{ User, DB string } }
	}
	good(c.client.Database("admin").RunCommand(c.ctx, d("connectionStatus", 1)).Decode(&status), "connectionStatus")
	equal(fmt.Sprint(status.AuthInfo.AuthenticatedUsers), fmt.Sprintf("[{%s admin}]", c.s.user), "authenticated users")
	u := must(url.Parse(c.s.single))
	u.User = url.UserPassword(c.s.user, "wrong")
	wrong := c.s.connect(c.t, u.String())
	failed(wrong.Database(goDatabase).Collection("x").FindOne(c.ctx, bson.D{}).Err(), 18, "a wrong password")
	u.User = nil
	failed(c.s.connect(c.t, u.String()).Database(goDatabase).Collection("x").FindOne(c.ctx, bson.D{}).Err(), 13, "reading as no one")
}

func (c *goClient) encryption() {
	if !c.s.tls {
		panic(skip("TLS is off"))
	}
	soon := func(o *options.ClientOptions) { o.SetServerSelectionTimeout(time.Second) }
	untrusting := c.s.connect(c.t, c.s.single, soon, func(o *options.ClientOptions) { o.SetTLSConfig(&tls.Config{}) })
	err := untrusting.Ping(c.ctx, nil)
	equal(err != nil && strings.Contains(err.Error(), "certificate"), true, fmt.Sprint("a certificate that no one trusts: ", err))
	plain := c.s.connect(c.t, strings.Replace(c.s.single, "tls=true", "tls=false", 1), soon, func(o *options.ClientOptions) { o.TLSConfig = nil })
	equal(plain.Ping(c.ctx, nil) != nil, true, "plain text fails")
}
