package reference

import (
	"context"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestEmbedded goes through handshake, TLS and SCRAM with a server that no
// script knows.
func TestEmbedded(t *testing.T) {
	for _, c := range []struct {
		why     string
		options embedded.Options
		uri     bson.D
	}{
		{"plain", embedded.Options{}, nil},
		{"TLS", embedded.Options{Topology: embedded.ReplicaSet, TLS: true}, bson.D{{Key: "tls", Value: true}, {Key: "tlsInsecure", Value: true}}},
		{"SCRAM", embedded.Options{Topology: embedded.Sharded, Users: []embedded.User{{Name: "u", Password: "p"}}}, nil},
		{"compressed", embedded.Options{Topology: embedded.LoadBalanced}, bson.D{{Key: "compressors", Value: bson.A{"zlib"}}}},
	} {
		t.Run(c.why, func(t *testing.T) {
			d, err := embedded.Start(context.Background(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			e, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			test, err := e.Begin(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{Test: test, t: t}
			uri := d.URI()
			open := func(kind, id string, o bson.D) {
				if err := test.Open(context.Background(), engine.Entity{Kind: kind, ID: id, URI: uri,
					Options: raw(t, append(bson.D{{Key: "id", Value: id}}, o...))}); err != nil {
					t.Fatal(err)
				}
			}
			open("client", "client", bson.D{{Key: "uriOptions", Value: c.uri}})
			open("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
			open("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
			open("bucket", "bucket", bson.D{{Key: "database", Value: "database"}})
			b.must("collection", "insertMany", bson.D{{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}}}})
			b.must("client", "$configureFailPoint", bson.D{{Key: "command", Value: bson.D{{Key: "configureFailPoint", Value: "failCommand"},
				{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}}}}}})
			found := b.must("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}, {Key: "batchSize", Value: 1}})
			if values, err := found.Array().Values(); err != nil || len(values) != 2 {
				t.Errorf("found %v", found)
			}
			id := b.must("bucket", "upload", bson.D{{Key: "filename", Value: "f"}, {Key: "source", Value: bson.D{{Key: "$$hexBytes", Value: "0102"}}}, {Key: "chunkSizeBytes", Value: 1}})
			if _, data, _ := b.must("bucket", "download", bson.D{{Key: "id", Value: id}}).BinaryOK(); string(data) != "\x01\x02" {
				t.Errorf("downloaded %x", data)
			}
			if err := test.End(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func (b *bench) must(object, name string, args bson.D) bson.RawValue {
	b.t.Helper()
	out := b.do(object, name, args)
	if out.Err != nil {
		b.t.Fatalf("%s: %v", name, out.Err)
	}
	return out.Value
}
