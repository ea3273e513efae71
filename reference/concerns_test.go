package reference

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestWriteConcernOfAnEntity checks that an operation that would use an invalid write concern of its entity sends nothing,
// and that others can use the entity.
func TestWriteConcernOfAnEntity(t *testing.T) {
	const upload = `upload {"filename":"f","source":{"$$hexBytes":"0102"}}`
	for _, concern := range []string{`{"w":0,"journal":true}`, `{"w":-1}`, `{"journal":true,"wtimeoutMS":-1}`} {
		for _, row := range []struct {
			kind, do string
			refused  bool
		}{
			{"collection", `insertOne {"document":{"_id":1}}`, true},
			{"collection", `insertOne {"document":{"_id":1},"writeConcern":{"w":1}}`, false},
			{"collection", `find {"filter":{}}`, false},
			{"collection", `aggregate {"pipeline":[{"$out":"x"}]}`, true},
			{"collection", `dropIndexes`, true},
			{"database", `createCollection {"collection":"x"}`, true},
			{"database", `runCommand {"commandName":"ping","command":{"ping":1}}`, false},
			{"bucket", upload, true},
			{"bucket", `delete {"id":1}`, true},
			{"bucket", `deleteByName {"filename":"f"}`, true},
			{"bucket", `renameByName {"filename":"f","newFilename":"g"}`, true},
			{"bucket", `drop`, true},
			{"bucket", `find {"filter":{}}`, false},
		} {
			s := script(t, "replicaset", 1)
			e, err := New(Options{dial: s.dial})
			testkit.Check(t, err)
			b := openOn(t, e, s.uri(), nil)
			for kind, of := range map[string]bson.D{
				"database": d("client", "client", "databaseName", "x"), "collection": d("database", "database", "collectionName", "x"),
				"bucket": d("database", "database")} {
				options := testkit.Either(kind == "bucket", "bucketOptions", kind+"Options")
				b.entity(kind, "my-"+kind, append(of, bson.E{Key: options, Value: d("writeConcern", parsed(t, concern))}))
			}
			out, sent := b.perform("my-"+row.kind+"."+row.do), len(s.seen)
			refused := out.Err != nil && out.Err.Kind == "argument"
			if refused != row.refused || refused != (sent == 0) {
				t.Errorf("%s, %s.%s: %v, %d commands", concern, row.kind, row.do, out.Err, sent)
			}
			_ = b.End(t.Context())
		}
	}
}
