package reference

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestSchemaArguments looks where the arguments of operations that create, change
// and drop things stand in their commands.
func TestSchemaArguments(t *testing.T) {
	s := script(t, "replicaset", 1)
	b := open(t, s, Options{}, nil)
	for _, row := range []struct{ reason, object, operation, args, command, fields string }{
		{"all of an index", "collection", "createIndex", `{"keys":{"a":1},"name":"i","background":true,"2dsphereIndexVersion":3,"bits":26,"bucketSize":1,"language_override":"l",
			"max":1,"min":0,"storageEngine":{},"textIndexVersion":3,"version":2}`, "createIndexes",
			`{"indexes":[{"key":{"a":1},"name":"i","2dsphereIndexVersion":3,"background":true,"bits":26,"bucketSize":1,"language_override":"l","max":1,"min":0,
			"storageEngine":{},"textIndexVersion":3,"v":2}]}`},
		{"its write concern is no field of the index", "collection", "createIndex", `{"keys":{"a":1},"writeConcern":{"w":1}}`, "createIndexes",
			`{"indexes":[{"key":{"a":1},"name":"a_1"}],"writeConcern":{"w":1}}`},
		{"an index is dropped", "collection", "dropIndex", `{"name":"i","writeConcern":{"w":1}}`, "dropIndexes", `{"index":"i","writeConcern":{"w":1}}`},
		{"all are", "collection", "dropIndexes", `{"writeConcern":{"w":"majority"}}`, "dropIndexes", `{"index":"*","writeConcern":{"w":"majority"}}`},
		{"another name", "collection", "rename", `{"to":"x","maxTimeMS":5,"writeConcern":{"w":1}}`, "renameCollection",
			`{"renameCollection":"db.coll","to":"db.x","maxTimeMS":5,"writeConcern":{"w":1},"$db":"admin"}`},
		{"a collection", "database", "createCollection", `{"collection":"x","storageEngine":{},"maxTimeMS":5,"writeConcern":{"w":1}}`, "create",
			`{"create":"x","storageEngine":{},"maxTimeMS":5,"writeConcern":{"w":1}}`},
		{"none any more", "database", "dropCollection", `{"collection":"x","maxTimeMS":5,"writeConcern":{"journal":true}}`, "drop",
			`{"drop":"x","maxTimeMS":5,"writeConcern":{"j":true}}`},
		{"a change", "database", "modifyCollection", `{"collection":"x","timeseries":{"granularity":"hours"},"comment":"c","maxTimeMS":5,"writeConcern":{"w":1}}`, "collMod",
			`{"collMod":"x","timeseries":{"granularity":"hours"},"comment":"c","maxTimeMS":5,"writeConcern":{"w":1}}`},
		{"without a write concern none is sent", "database", "dropCollection", `{"collection":"x"}`, "drop", `{"writeConcern":null}`},
	} {
		before := len(s.commands(row.command))
		var args, want bson.D
		for text, into := range map[string]*bson.D{row.args: &args, row.fields: &want} {
			if err := bson.UnmarshalExtJSON([]byte(text), false, into); err != nil {
				t.Fatalf("%s: %v", row.reason, err)
			}
		}
		if out := b.do(row.object, row.operation, args); out.Err != nil {
			t.Errorf("%s: %v", row.reason, out.Err)
			continue
		}
		sent := s.commands(row.command)[before:]
		if len(sent) != 1 {
			t.Fatalf("%s: sent %d times", row.reason, len(sent))
		}
		for _, e := range want {
			got, err := sent[0].LookupErr(e.Key)
			if e.Value == nil {
				if err == nil {
					t.Errorf("%s: %s is there: %v", row.reason, e.Key, got)
				}
				continue
			}
			kind, data, bad := bson.MarshalValue(e.Value)
			if bad != nil {
				t.Fatal(bad)
			}
			if w := (bson.RawValue{Type: kind, Value: data}); err != nil || !got.Equal(w) {
				t.Errorf("%s: %s is %v, want %v", row.reason, e.Key, got, w)
			}
		}
	}
	s.on("collMod", step{reply: bson.D{{Key: "hidden_old", Value: false}, {Key: "ok", Value: 1.0}}})
	out := b.do("database", "modifyCollection", bson.D{{Key: "collection", Value: "x"}})
	if doc, ok := out.Value.DocumentOK(); !ok || doc.Lookup("hidden_old").Type != bson.TypeBoolean {
		t.Errorf("modifyCollection gave %v, want the reply", out.Value)
	}
}
