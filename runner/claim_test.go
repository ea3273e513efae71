package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// Namespaces finds each place where a suite names a collection.
func TestNamespaces(t *testing.T) {
	const entities = `[{client: {id: c}}, {database: {id: d, client: c, databaseName: db}}, {collection: {id: x, database: d, collectionName: own}}]`
	for _, r := range []struct{ reason, fields, want string }{
		{"a collection", `operations: []`, "db.own"},
		{"an outcome", `operations: [], outcome: [{databaseName: o, collectionName: p, documents: []}]`, "db.own o.p"},
		{"$out", `operations: [{name: aggregate, object: x, arguments: {pipeline: [{$match: {}}, {$out: target}]}}]`,
			"db.own db.target"},
		{"$out to a database", `operations: [{name: aggregate, object: x, arguments: {pipeline: [{$out: {db: other, coll: target}}]}}]`, "db.own other.target"},
		{"$merge", `operations: [{name: aggregate, object: d, arguments: {pipeline: [{$merge: {into: target}}]}}]`,
			"db.own db.target"},
		{"$merge to a database", `operations: [{name: aggregate, object: x, arguments: {pipeline: [{$merge: {into: {db: other, coll: target}}}]}}]`, "db.own other.target"},
		{"mapReduce", `operations: [{name: mapReduce, object: x, arguments: {map: {$code: x}, reduce: {$code: x}, out: {merge: target, db: other}}}]`, "db.own other.target"},
		{"createCollection", `operations: [{name: createCollection, object: d, arguments: {collection: new}}]`,
			"db.new db.own"},
		{"dropCollection, in a transaction",
			`operations: [{name: withTransaction, object: s, arguments: {callback: [{name: dropCollection, object: d, arguments: {collection: old}}]}}]`,
			"db.old db.own"},
		{"rename", `operations: [{name: rename, object: x, arguments: {to: target}}]`, "db.own db.target"},
		{"a bulk write", `operations: [{name: clientBulkWrite, object: c, arguments: {models: [{insertOne: {namespace: a.b.c, document: {}}}, {deleteMany: {namespace: e.f, filter: {}}}]}}]`,
			"a.b.c db.own e.f"},
		{"a database is dropped", `operations: [{name: dropDatabase, object: c, arguments: {database: gone}}]`,
			"db.own gone.*"},
		{"commands", `operations: [
			{name: runCommand, object: d, arguments: {commandName: insert, command: {insert: target, documents: [{}]}}},
			{name: runCommand, object: d, arguments: {commandName: renameCollection, command: {renameCollection: a.b, to: e.f}}},
			{name: runCommand, object: d, arguments: {commandName: aggregate, command: {aggregate: 1, pipeline: [{$out: written}], cursor: {}}}},
			{name: runCommand, object: d, arguments: {commandName: bulkWrite, command: {bulkWrite: 1, ops: [], nsInfo: [{ns: g.h}]}}},
			{name: runCommand, object: d, arguments: {commandName: dropDatabase, command: {dropDatabase: 1}}},
			{name: runCommand, object: d, arguments: {commandName: ping, command: {ping: 1}}}]`,
			"a.b db.* db.own db.target db.written e.f g.h"},
		{"a command that names no collection",
			`operations: [{name: runCommand, object: d, arguments: {commandName: getParameter, command: {getParameter: "*"}}}]`, "db.own"},
		{"a document that looks like an argument",
			`operations: [{name: insertOne, object: x, arguments: {document: {to: a, namespace: b.c, $out: e}}}]`, "db.own"},
		{"GridFS buckets, created by an operation",
			`operations: [{name: createEntities, object: testRunner, arguments: {entities: [
			{bucket: {id: b1, database: d}}, {bucket: {id: b2, database: d, bucketOptions: {bucketName: mine}}}]}}]`,
			"db.fs.chunks db.fs.files db.mine.chunks db.mine.files db.own"},
		{"a key vault", `operations: [{name: createEntities, object: testRunner, arguments: {entities: [
			{clientEncryption: {id: e, clientEncryptionOpts: {keyVaultClient: c, keyVaultNamespace: v.keys, kmsProviders: {local: {key: {$$placeholder: 1}}}}}}]}}]`,
			"db.own v.keys"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			text := "description: x\nschemaVersion: '1.28'\ncreateEntities: " + strings.TrimSuffix(entities, "]") +
				", {session: {id: s, client: c}}]\ntests: [{description: a, " + strings.NewReplacer("\n", " ", "\t",
				"").Replace(r.fields) + "}]\n"
			suite, err := specs.Parse("s.yml", []byte(text))
			testkit.Check(t, err)
			testkit.Equal(t, "namespaces", strings.Join(Namespaces([]*specs.Suite{suite, suite}), " "), r.want)
		})
	}
}

// A run may use a collection that is empty, that an earlier run used, or that the user allows utr to overwrite. A
// refused run changes nothing.
func TestClaim(t *testing.T) {
	const out = `operations: [{name: aggregate, object: x, arguments: {pipeline: [{$out: target}]}}]`
	const drop = `operations: [{name: dropDatabase, object: c, arguments: {database: db}}]`
	for _, r := range []struct {
		reason    string
		exist     string // collections with a document
		used      string // by an earlier run
		test      string
		overwrite bool
		foreign   string
		after     string // used
	}{
		{"nothing exists", "", "", out, false, "", "db.own db.target"},
		{"a target has a document", "db.target", "", out, false, "db.target", ""},
		{"a target has a document, and the user allows it", "db.target", "", out, true, "", "db.own db.target"},
		{"an earlier run used it", "db.target", "db.target", out, false, "", "db.own db.target"},
		{"another collection has a document", "db.other", "", out, false, "", "db.own db.target"},
		{"a collection of a database that is dropped", "db.other", "", drop, false, "db.other", ""},
		{"a collection of a database that is dropped, and the user allows it", "db.other", "", drop, true, "",
			"db.other db.own"},
		{"two collections, one of which was used", "db.own db.target", "db.own", out, false, "db.target", "db.own"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d, err := embedded.Start(context.Background(), embedded.Options{})
			testkit.Check(t, err)
			t.Cleanup(func() { _ = d.Close() })
			client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
			testkit.Check(t, err)
			defer func() { _ = client.Disconnect(context.Background()) }()
			insert := func(namespace string, document bson.D) {
				database, collection, _ := strings.Cut(namespace, ".")
				_, err := client.Database(database).Collection(collection).InsertOne(t.Context(), document)
				testkit.Check(t, err)
			}
			for _, namespace := range strings.Fields(r.exist) {
				insert(namespace, bson.D{})
			}
			for _, namespace := range strings.Fields(r.used) {
				insert("utr.used", bson.D{{Key: "_id", Value: namespace}})
			}
			suite, err := specs.Parse("s.yml",
				[]byte("description: x\nschemaVersion: '1.28'\ncreateEntities: [{client: {id: c}}, "+
					"{database: {id: d, client: c, databaseName: db}}, {collection: {id: x, database: d, collectionName: own}}]\n"+
					"tests: [{description: a, "+r.test+"}]\n"))
			testkit.Check(t, err)
			source, err := deployment.OpenCluster(testkit.Context(t), deployment.ClusterOptions{URI: d.URI()})
			testkit.Check(t, err)
			defer func() { testkit.Check(t, source.Close()) }()
			err = Claim(testkit.Context(t), []*specs.Suite{suite}, Config{Engine: &fakeEngine{}, Source: source}, r.overwrite)
			foreign := new(ForeignError)
			if !errors.As(err, &foreign) && err != nil {
				t.Fatal(err)
			}
			testkit.Equal(t, "documents of others", strings.Join(foreign.Namespaces, " "), r.foreign)
			var used []struct {
				ID string `bson:"_id"`
			}
			cursor, err := client.Database("utr").Collection("used").Find(t.Context(), bson.D{},
				options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
			testkit.Check(t, err)
			testkit.Check(t, cursor.All(t.Context(), &used))
			var names []string
			for _, u := range used {
				names = append(names, u.ID)
			}
			testkit.Equal(t, "used", fmt.Sprint(strings.Join(names, " ")), r.after)
		})
	}
}
