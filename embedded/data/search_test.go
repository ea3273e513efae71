package data

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// TestNoAtlasSearch is what servers say to commands of search indexes.
func TestNoAtlasSearch(t *testing.T) {
	const (
		create = `{"createSearchIndexes":"c","indexes":[{"name":"x","type":"search","definition":{"mappings":{"dynamic":true}}}]}`
		update = `{"updateSearchIndex":"c","name":"x","definition":{}}`
		drop   = `{"dropSearchIndex":"c","name":"x"}`
		list   = `{"aggregate":"c","pipeline":[{"$listSearchIndexes":{"name":"x"}}],"cursor":{}}`
	)
	for _, row := range []struct {
		reason, command string
		wire            int
		code            int32
		text            string
	}{
		{"create", create, 25, 31082, "Atlas"},
		{"update", update, 25, 31082, "Atlas"},
		{"drop", drop, 29, 31082, "Atlas"},
		{"list", list, 25, 31082, "Using Atlas"},
		{"a list that is only explained", strings.Replace(list, `"cursor":{}`, `"explain":true`, 1), 25, 31082, "Atlas"},
		{"a list in another pipeline", `{"aggregate":"c","pipeline":[{"$unionWith":{"coll":"c","pipeline":[{"$listSearchIndexes":{}}]}}],"cursor":{}}`, 25, 31082, "Atlas"},
		{"a list that is not first", `{"aggregate":"c","pipeline":[{"$match":{}},{"$listSearchIndexes":{}}],"cursor":{}}`, 25, 40602, ""},
		{"none to create", `{"createSearchIndexes":"c","indexes":[]}`, 25, 31082, "Atlas"},
		{"create, in 7.0", create, 21, 115, "only supported with Atlas"},
		{"update, in 7.0", update, 21, 115, "Atlas"},
		{"drop, in a later patch of 6.0", drop, 17, 115, "Atlas"},
		{"list, in 7.0", list, 21, 115, "PlanExecutor error during aggregation :: caused by :: "},
		{"5.0 has no such command", create, 13, 59, "no such command"},
		{"nor such a stage", list, 13, 40324, "'$listSearchIndexes'"},
		{"what to create is not said", `{"createSearchIndexes":"c"}`, 25, 40414, ""},
		{"what to create is no list", `{"createSearchIndexes":"c","indexes":1}`, 25, 14, ""},
		{"an index that is no document", `{"createSearchIndexes":"c","indexes":[1]}`, 25, 14, ""},
		{"an index without definition", `{"createSearchIndexes":"c","indexes":[{"name":"x"}]}`, 25, 40414, ""},
		{"a name that is none", `{"createSearchIndexes":"c","indexes":[{"name":1,"definition":{}}]}`, 25, 14, ""},
		{"an index with more", `{"createSearchIndexes":"c","indexes":[{"definition":{},"x":1}]}`, 25, 40415, ""},
		{"a command with more", `{"dropSearchIndex":"c","x":1}`, 25, 40415, ""},
		{"an update of nothing", `{"updateSearchIndex":"c","name":"x"}`, 25, 40414, ""},
		{"a collection that has no name", `{"dropSearchIndex":1,"name":"x"}`, 25, 73, ""},
	} {
		b := replicaSet(t)
		b.must(`{"insert":"c","documents":[{"_id":1}]}`)
		b.server.Wire = row.wire
		_, err := b.do(row.command)
		var e *command.Error
		if !errors.As(err, &e) || e.Code != row.code || !strings.Contains(e.Message, row.text) {
			t.Errorf("%s: got %#v, want code %d and %q", row.reason, err, row.code, row.text)
		}
	}
	if got := replicaSet(t).code(`{"update":"c","updates":[{"q":{},"u":[{"$listSearchIndexes":{}}]}]}`); got != 72 {
		t.Errorf("as a stage of an update: code %d, want 72", got)
	}
	router := newBench(t, Options{ReplicaSet: true, Sharded: true, ShardName: "s", ShardHost: "s/h:1"})
	router.server.Wire = 21
	if _, err := router.do(list); err == nil || err.Error() != "Search index commands are only supported with Atlas." {
		t.Errorf("a mongos, which runs the stage itself: %v", err)
	}
}

func TestCheckMetadataConsistency(t *testing.T) {
	sharded := Options{ReplicaSet: true, Sharded: true, ShardName: "s", ShardHost: "s/h:1"}
	for _, row := range []struct {
		reason, command string
		wire            int
		code            int32
		ns              string
	}{
		{"a database", `{"checkMetadataConsistency":1}`, 21, 0, "db.$cmd.aggregate"},
		{"a batch of one", `{"checkMetadataConsistency":1,"cursor":{"batchSize":1}}`, 25, 0, "db.$cmd.aggregate"},
		{"a collection", `{"checkMetadataConsistency":"c"}`, 25, 0, "db.c"},
		{"neither", `{"checkMetadataConsistency":2}`, 25, 9, ""},
		{"a cursor that is none", `{"checkMetadataConsistency":1,"cursor":1}`, 25, 14, ""},
		{"6.0 does not have it", `{"checkMetadataConsistency":1}`, 17, 59, ""},
	} {
		b := newBench(t, sharded)
		b.must(`{"insert":"c","documents":[{"_id":1}]}`)
		b.server.Wire = row.wire
		if got := b.code(row.command); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
			continue
		}
		if row.code != 0 {
			continue
		}
		r := b.must(row.command)
		if got := docs(t, r); got != "" || cursorID(r) != 0 {
			t.Errorf("%s: found %s, cursor %d", row.reason, got, cursorID(r))
		}
		cursor, _ := value.Field(r, "cursor")
		if ns, _ := value.Field(cursor.(bson.D), "ns"); ns != row.ns {
			t.Errorf("%s: namespace %v, want %s", row.reason, ns, row.ns)
		}
	}
	if got := newBench(t, sharded).code(`{"checkMetadataConsistency":1}`); got != 26 {
		t.Errorf("a database that is not there: code %d, want 26", got)
	}
	if got := replicaSet(t).code(`{"checkMetadataConsistency":1}`); got != 59 {
		t.Errorf("a replica set: code %d, want 59", got)
	}
}
