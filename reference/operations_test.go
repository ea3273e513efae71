package reference

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestEmbedded tests handshakes, TLS, SCRAM and compression with embedded servers.
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
			if out := b.perform(`find {"batchSize":1}`); out.Err != nil || strings.Count(out.Value.String(), "_id") != 2 ||
				len(out.Decisions) < 4 {
				t.Errorf("found %v after %v, %v", out.Value, out.Decisions, out.Err)
			}
			id := b.perform(`bucket.upload {"filename":"f","source":{"$$hexBytes":"0102"},"chunkSizeBytes":1}`)
			if _, data, _ := b.must("bucket", "download", d("id", id.Value.RawValue)).BinaryOK(); string(data) != "\x01\x02" {
				t.Errorf("downloaded %x", data)
			}
		})
	}
}

// TestGridFSMatchesExactly checks that an id or a name that looks like a condition finds no other file.
func TestGridFSMatchesExactly(t *testing.T) {
	deployment, err := embedded.Start(testkit.Context(t), embedded.Options{})
	testkit.Check(t, err)
	defer func() { _ = deployment.Close() }()
	b := open(t, deployment.URI(), Options{}, nil)
	for _, id := range []string{"1", `{"a":1}`} {
		out := b.perform(`bucket.uploadWithId {"id":` + id +
			`,"filename":"f","source":{"$$hexBytes":"0102"},"chunkSizeBytes":1}`)
		testkit.Equal(t, "upload "+id, out.Err, nil)
	}
	for _, value := range []string{`{"$exists":true}`, `{"$eq":1}`, `{}`, `{"a":{"$gt":0}}`,
		`{"$regularExpression":{"pattern":"","options":""}}`} {
		for _, do := range []string{`delete {"id":%s}`, `download {"id":%s}`, `rename {"id":%s,"newFilename":"g"}`,
			`deleteByName {"filename":%s}`,
			`downloadByName {"filename":%s}`, `renameByName {"filename":%s,"newFilename":"g"}`} {
			do = "bucket." + fmt.Sprintf(do, value)
			if out := b.perform(do); out.Err == nil || out.Err.Kind != "gridfs" {
				t.Errorf("%s: %v, %v", do, out.Value, out.Err)
			}
		}
	}
	for _, id := range []string{"1", `{"a":1}`} {
		for _, do := range []string{`download {"id":%s}`, `rename {"id":%s,"newFilename":"g"}`, `delete {"id":%s}`} {
			do = "bucket." + fmt.Sprintf(do, id)
			testkit.Equal(t, do, b.perform(do).Err, nil)
		}
	}
}

// TestBatches checks grouping and splitting. Each write has 10 bytes.
func TestBatches(t *testing.T) {
	commands := map[rune]string{'i': "insert", 'u': "update", 'd': "delete"}
	for _, c := range []struct {
		why, writes string
		ordered     bool
		limit       limits
		want        string
	}{
		{"ordered writes", "iuudi", true, limits{9, 99}, "insert [0]; update [1 2]; delete [3]; insert [4]; "},
		{"unordered writes", "iuudi", false, limits{9, 99}, "insert [0 4]; update [1 2]; delete [3]; "},
		{"writes of one kind", "uuu", true, limits{9, 99}, "update [0 1 2]; "},
		{"a full batch", "iiiii", true, limits{2, 99}, "insert [0 1]; insert [2 3]; insert [4]; "},
		{"a full batch of unordered writes", "iuiuii", false, limits{2, 99}, "insert [0 2]; update [1 3]; insert [4 5]; "},
		{"as many bytes as possible", "iii", true, limits{9, 28}, "insert [0 1]; insert [2]; "},
		{"too many bytes", "iii", true, limits{9, 27}, "insert [0]; insert [1]; insert [2]; "},
		{"statements that are too large", "iii", false, limits{9, 17}, "insert [0]! insert [1]! insert [2]! "},
	} {
		var writes []*write
		for i, command := range c.writes {
			writes = append(writes, &write{place: i, command: commands[command], bytes: 10})
		}
		got := ""
		for len(writes) > 0 {
			b, cmd := &batch{from: writes, ordered: c.ordered}, &command{}
			testkit.Equal(t, "the error", b.fit(cmd, d("x", nil), func() bson.D { return nil }), nil) // 8 bytes
			end := testkit.Either(cmd.fit(c.limit) == nil, "; ", "! ")
			got += fmt.Sprintf("%s %v%s", b.command(), b.places, end)
			writes = b.rest
		}
		testkit.Equal(t, c.why, got, c.want)
	}
}
