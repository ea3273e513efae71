package reference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestEmbedded goes through handshake, TLS and SCRAM with a server that no
// script knows.
func TestEmbedded(t *testing.T) {
	for _, c := range []struct {
		why     string
		options embedded.Options
		client  string
	}{
		{"plain", embedded.Options{}, `{}`},
		{"TLS", embedded.Options{Topology: embedded.ReplicaSet, TLS: true}, `{"uriOptions":{"tls":true,"tlsInsecure":true}}`},
		{"SCRAM", embedded.Options{Topology: embedded.Sharded, Users: []embedded.User{{Name: "u", Password: "p"}}}, `{}`},
		{"compressed", embedded.Options{Topology: embedded.LoadBalanced}, `{"uriOptions":{"compressors":["zlib"]}}`},
	} {
		t.Run(c.why, func(t *testing.T) {
			deployment, err := embedded.Start(testkit.Context(t), c.options)
			testkit.Check(t, err)
			defer func() { _ = deployment.Close() }()
			b := open(t, deployment.URI(), Options{}, parsed(t, c.client))
			defer func() { _ = b.End(t.Context()) }()
			b.perform(`insertMany {"documents":[{"_id":1},{"_id":2}]}`)
			b.perform(`client.$configureFailPoint {"command":{"configureFailPoint":"failCommand","mode":{"times":1},
				"data":{"failCommands":["find"],"closeConnection":true}}}`)
			if out := b.perform(`find {"batchSize":1}`); out.Err != nil || strings.Count(out.Value.String(), "_id") != 2 || len(out.Decisions) < 4 {
				t.Errorf("found %v after %v, %v", out.Value, out.Decisions, out.Err)
			}
			id := b.perform(`bucket.upload {"filename":"f","source":{"$$hexBytes":"0102"},"chunkSizeBytes":1}`)
			if _, data, _ := b.must("bucket", "download", d("id", id.Value)).BinaryOK(); string(data) != "\x01\x02" {
				t.Errorf("downloaded %x", data)
			}
		})
	}
}

// TestSchemaArguments looks where the arguments of operations that create, change
// and drop things stand in their commands.
func TestSchemaArguments(t *testing.T) {
	const index = `"background":true,"bits":26,"bucketSize":1,"language_override":"l","max":1,"min":0,"storageEngine":{},"textIndexVersion":3,`
	tell(t, []story{
		{"all of an index", "show=*", `collection.createIndex {` + index + `"keys":{"a":1},"name":"i","2dsphereIndexVersion":3,"version":2}`, "",
			`createIndexes/"indexes":[{"key":{"a":1},"name":"i","2dsphereIndexVersion":3,` + index + `"v":2}]`},
		{"its write concern is not a field of the index", "show=*", `collection.createIndex {"keys":{"a":1},"writeConcern":{"w":1}}`, "",
			`createIndexes/"indexes":[{"key":{"a":1},"name":"a_1"}],"writeConcern":{"w":1}`},
		{"an index is dropped", "show=*", `collection.dropIndex {"name":"i","writeConcern":{"w":1}}`, "", `dropIndexes/"index":"i","writeConcern":{"w":1}`},
		{"all are", "show=*", `collection.dropIndexes {"writeConcern":{"w":"majority"}}`, "", `dropIndexes/"index":"*","writeConcern":{"w":"majority"}`},
		{"another name", "show=renameCollection,$db,*", `collection.rename {"to":"x","maxTimeMS":5,"writeConcern":{"w":1}}`, "",
			`renameCollection/db.coll/admin/"to":"db.x","maxTimeMS":5,"writeConcern":{"w":1}`},
		{"a collection", "show=create,*", `create {"collection":"x","storageEngine":{},"maxTimeMS":5,"writeConcern":{"w":1}}`, "",
			`create/x/"storageEngine":{},"maxTimeMS":5,"writeConcern":{"w":1}`},
		{"a collection is dropped", "show=drop,*", `database.dropCollection {"collection":"x","maxTimeMS":5,"writeConcern":{"journal":true}}`, "",
			`drop/x/"maxTimeMS":5,"writeConcern":{"j":true}`},
		{"a change, which gives the reply", "show=collMod,* value", `database.modifyCollection {"collection":"x","timeseries":{"granularity":"hours"},
			"comment":"c","maxTimeMS":5,"writeConcern":{"w":1}}`, "",
			`collMod/x/"timeseries":{"granularity":"hours"},"comment":"c","maxTimeMS":5,"writeConcern":{"w":1} =ok,operationTime,$clusterTime`},
		{"search indexes", "show=*", `collection.createSearchIndexes {"models":[{"definition":{"a":1},"name":"i"}]}`, "",
			`createSearchIndexes/"indexes":[{"definition":{"a":1},"name":"i"}]`},
		{"one is changed", "show=*", `collection.updateSearchIndex {"name":"i","definition":{"a":2}}`, "",
			`updateSearchIndex/"name":"i","definition":{"a":2}`},
		{"and dropped", "show=dropSearchIndex,*", `collection.dropSearchIndex {"name":"i"}`, "", `dropSearchIndex/coll/"name":"i"`},
		{"they are listed", "show=*", `collection.listSearchIndexes {"name":"i","aggregationOptions":{"batchSize":3}}`, "",
			`aggregate/"pipeline":[{"$listSearchIndexes":{"name":"i"}}],"cursor":{"batchSize":3}`},
		{"without a write concern none is sent", "show=*", `database.dropCollection {"collection":"x"}`, "", `drop/`},
	})
}

// TestBatches: groups follow the order if they have to, and are split where a
// server takes no more. Each write has 10 bytes.
func TestBatches(t *testing.T) {
	kinds := map[rune]string{'i': "insertOne", 'u': "updateOne", 'U': "updateMany", 'd': "deleteOne"}
	for _, c := range []struct {
		why, models string
		ordered     bool
		limit       limits
		want        string
	}{
		{"ordered groups follow each other", "iuudi", true, limits{9, 99}, "insert [0]; update [1 2]; delete [3]; insert [4]; "},
		{"unordered ones are gathered", "iuudi", false, limits{9, 99}, "insert [0 4]; update [1 2]; delete [3]; "},
		{"many and one share a command", "uUu", true, limits{9, 99}, "update [0 1 2]; "},
		{"a full batch", "iiiii", true, limits{2, 99}, "insert [0 1]; insert [2 3]; insert [4]; "},
		{"a full batch among others", "iuiuii", false, limits{2, 99}, "insert [0 2]; update [1 3]; insert [4 5]; "},
		{"too many bytes", "iii", true, limits{9, 20}, "insert [0 1]; insert [2]; "},
		{"a statement that is too large stands alone", "iii", false, limits{9, 5}, "insert [0]; insert [1]; insert [2]; "},
	} {
		var models []model
		var sizes []int
		for _, kind := range c.models {
			models, sizes = append(models, model{kind: kinds[kind]}), append(sizes, 10)
		}
		got := ""
		for _, b := range batches(models, sizes, c.ordered, c.limit) {
			got += fmt.Sprintf("%s %v; ", b.group, b.models)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
}
