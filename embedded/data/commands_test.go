package data

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// fixture is the database that the commands below find.
var fixture = []string{
	`{"insert":"c","documents":[{"_id":1}]}`,
	`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"},{"key":{"x":1,"y":1},"name":"xy"},{"key":{"p":1},"name":"p","prepareUnique":true},
		{"key":{"d":1},"name":"d"},{"key":{"d":1},"name":"e","partialFilterExpression":{"d":1}}]}`,
	`{"create":"clustered","clusteredIndex":{"key":{"_id":1},"unique":true,"name":"by id"}}`,
	`{"create":"capped","capped":true,"size":256}`,
	`{"createIndexes":"capped","indexes":[{"key":{"x":1},"name":"x_1"}]}`,
	`{"create":"v","viewOn":"c"}`,
}

// Commands of search indexes, which only Atlas serves.
const (
	createSearch = `{"createSearchIndexes":"c","indexes":[{"name":"x","type":"search","definition":{"mappings":{"dynamic":true}}}]}`
	updateSearch = `{"updateSearchIndex":"c","name":"x","definition":{}}`
	dropSearch   = `{"dropSearchIndex":"c","name":"x"}`
	listSearch   = `{"aggregate":"c","pipeline":[{"$listSearchIndexes":{"name":"x"}}],"cursor":{}}`
)

// TestCommands are commands that are refused, and the nearest that are not, by
// version. What is refused leaves the indexes as they were.
func TestCommands(t *testing.T) {
	for _, row := range []struct {
		reason, command string
		wire            int // 0: the latest
		code            int32
		text            string // part of the message
	}{
		// collMod
		{"an index by name and key", `{"collMod":"c","index":{"name":"x_1","keyPattern":{"x":1},"hidden":true}}`, 0, 72, ""},
		{"an index by nothing", `{"collMod":"c","index":{"hidden":true}}`, 0, 72, ""},
		{"nothing to change", `{"collMod":"c","index":{"name":"x_1"}}`, 0, 72, ""},
		{"an option that indexes do not have", `{"collMod":"c","index":{"name":"x_1","sparse":true}}`, 0, 40415, ""},
		{"unique is not a boolean", `{"collMod":"c","index":{"name":"x_1","unique":"100"}}`, 0, 14, ""},
		{"index is not a document", `{"collMod":"c","index":1}`, 0, 14, ""},
		{"no index of this name", `{"collMod":"c","index":{"name":"z","hidden":true}}`, 0, 27, ""},
		{"no index of this key", `{"collMod":"c","index":{"keyPattern":{"z":1},"hidden":true}}`, 0, 27, ""},
		{"two indexes of this key", `{"collMod":"c","index":{"keyPattern":{"d":1},"hidden":true}}`, 0, 181, ""},
		{"no collection", `{"collMod":"z","index":{"name":"x_1","hidden":true}}`, 0, 26, ""},
		{"a view", `{"collMod":"v","index":{"name":"x_1","hidden":true}}`, 0, 72, ""},
		{"unique cannot be taken back with false", `{"collMod":"c","index":{"name":"x_1","unique":false}}`, 0, 2, ""},
		{"nor is forceNonUnique", `{"collMod":"c","index":{"name":"x_1","forceNonUnique":false}}`, 0, 2, ""},
		{"both ways", `{"collMod":"c","index":{"name":"x_1","unique":true,"forceNonUnique":true}}`, 0, 72, ""},
		{"prepareUnique with another option", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true,"hidden":true}}`, 0, 72, ""},
		{"prepareUnique with another change", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true},"validationLevel":"off"}`, 0, 72, ""},
		{"the index of _id is not hidden", `{"collMod":"c","index":{"name":"_id_","hidden":true}}`, 0, 2, ""},
		{"the index of _id expires nothing", `{"collMod":"c","index":{"name":"_id_","expireAfterSeconds":1}}`, 0, 72, ""},
		{"the index of _id stays unique", `{"collMod":"c","index":{"name":"_id_","forceNonUnique":true}}`, 0, 0, ""},
		{"several fields expire nothing", `{"collMod":"c","index":{"name":"xy","expireAfterSeconds":1}}`, 0, 72, ""},
		{"a capped collection expires nothing", `{"collMod":"capped","index":{"name":"x_1","expireAfterSeconds":1}}`, 0, 72, ""},
		{"a time before now", `{"collMod":"c","index":{"name":"x_1","expireAfterSeconds":-1}}`, 0, 72, ""},
		{"a dry run of something else", `{"collMod":"c","index":{"name":"x_1","hidden":true},"dryRun":true}`, 0, 72, ""},
		{"a dry run without an index", `{"collMod":"c","validationLevel":"off","dryRun":true}`, 0, 72, ""},
		{"a dry run of more", `{"collMod":"c","index":{"name":"p","unique":true},"validationLevel":"off","dryRun":true}`, 0, 72, ""},
		{"5.0 knows no prepareUnique", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true}}`, 13, 40415, ""},
		{"4.4 does not know it either, in its own words", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true}}`, 9, 72, ""},
		{"4.4 knows hidden", `{"collMod":"c","index":{"name":"x_1","hidden":true}}`, 9, 0, ""},
		{"4.2 does not know hidden", `{"collMod":"c","index":{"name":"x_1","hidden":true}}`, 8, 72, ""},
		{"5.0 does not make such an index", `{"createIndexes":"c","indexes":[{"key":{"q":1},"name":"q","prepareUnique":true}]}`, 13, 197, ""},
		{"5.0 knows no dry run", `{"collMod":"c","index":{"name":"x_1","hidden":true},"dryRun":true}`, 13, 40415, ""},
		// clustered collections
		{"neither boolean nor document", `{"create":"x","clusteredIndex":"yes"}`, 0, 14, ""},
		{"true is for the server's own collections", `{"create":"x","clusteredIndex":true}`, 0, 5979703, ""},
		{"which take nothing else", `{"create":"system.buckets.x","clusteredIndex":{"key":{"_id":1},"unique":true}}`, 0, 5979703, ""},
		{"a field that it does not have", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true,"sparse":true}}`, 0, 40415, ""},
		{"no key", `{"create":"x","clusteredIndex":{"unique":true}}`, 0, 40414, ""},
		{"no unique", `{"create":"x","clusteredIndex":{"key":{"_id":1}}}`, 0, 40414, ""},
		{"not unique", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":false}}`, 0, 5979700, ""},
		{"a name that is not a string", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true,"name":1}}`, 0, 14, ""},
		{"another key", `{"create":"x","clusteredIndex":{"key":{"x":1},"unique":true}}`, 0, 197, ""},
		{"a descending key", `{"create":"x","clusteredIndex":{"key":{"_id":-1},"unique":true}}`, 0, 197, ""},
		{"another version", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true,"v":1}}`, 0, 5979704, ""},
		{"a view", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"viewOn":"c"}`, 0, 6026500, ""},
		{"without an index of _id", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"autoIndexId":false}`, 0, 6026501, ""},
		{"clustered and of a size", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"capped":true,"size":10}`, 0, 6049200, ""},
		{"clustered and of so many documents", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"max":10}`, 0, 6049204, ""},
		{"clustered and capped, without a limit", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"capped":true}`, 0, 6049201, ""},
		{"clustered and capped by time", `{"create":"y","clusteredIndex":{"key":{"_id":1},"unique":true},"capped":true,"expireAfterSeconds":10}`, 0, 0, ""},
		{"a time before now", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true},"expireAfterSeconds":-1}`, 0, 72, ""},
		{"documents expire only in clustered collections and time series", `{"create":"x","expireAfterSeconds":1}`, 0, 72, ""},
		{"false does not make it clustered", `{"create":"x","clusteredIndex":false,"expireAfterSeconds":1}`, 0, 72, ""},
		{"dropped by name", `{"dropIndexes":"clustered","index":"by id"}`, 0, 5979800, ""},
		{"dropped by key", `{"dropIndexes":"clustered","index":{"_id":1}}`, 0, 5979800, ""},
		{"dropped in a list", `{"dropIndexes":"clustered","index":["by id"]}`, 0, 5979800, ""},
		{"another index of its name", `{"createIndexes":"clustered","indexes":[{"key":{"x":1},"name":"by id"}]}`, 0, 6100906, ""},
		{"another clustered index", `{"createIndexes":"clustered","indexes":[{"key":{"x":1},"name":"x","clustered":true,"unique":true}]}`, 0, 6243700, ""},
		{"a clustered index of a plain collection",
			`{"createIndexes":"c","indexes":[{"key":{"_id":1},"name":"x","clustered":true,"unique":true}]}`, 0, 6243700, ""},
		{"a clustered index makes no collection",
			`{"createIndexes":"x","indexes":[{"key":{"_id":1},"name":"x","clustered":true,"unique":true}]}`, 0, 6100900, ""},
		{"a clustered index cannot be hidden", `{"collMod":"clustered","index":{"name":"by id","hidden":true}}`, 0, 6011800, ""},
		{"5.0 does not have clustered collections", `{"create":"x","clusteredIndex":{"key":{"_id":1},"unique":true}}`, 13, 40415, ""},
		// search indexes
		{"createSearchIndexes", createSearch, 0, 31082, "Atlas"},
		{"updateSearchIndex", updateSearch, 0, 31082, "Atlas"},
		{"dropSearchIndex", dropSearch, 29, 31082, "Atlas"},
		{"$listSearchIndexes", listSearch, 0, 31082, "Using Atlas"},
		{"$listSearchIndexes that is only explained", strings.Replace(listSearch, `"cursor":{}`, `"explain":true`, 1), 0, 31082, "Atlas"},
		{"$listSearchIndexes in another pipeline",
			`{"aggregate":"c","pipeline":[{"$unionWith":{"coll":"c","pipeline":[{"$listSearchIndexes":{}}]}}],"cursor":{}}`, 0, 31082, "Atlas"},
		{"$listSearchIndexes that is not first", `{"aggregate":"c","pipeline":[{"$match":{}},{"$listSearchIndexes":{}}],"cursor":{}}`, 0, 40602, ""},
		{"no index to create", `{"createSearchIndexes":"c","indexes":[]}`, 0, 31082, "Atlas"},
		{"createSearchIndexes in 7.0", createSearch, 21, 115, "only supported with Atlas"},
		{"updateSearchIndex in 7.0", updateSearch, 21, 115, "Atlas"},
		{"dropSearchIndex in a later patch of 6.0", dropSearch, 17, 115, "Atlas"},
		{"$listSearchIndexes in 7.0", listSearch, 21, 115, "PlanExecutor error during aggregation :: caused by :: "},
		{"as a stage of an update", `{"update":"c","updates":[{"q":{},"u":[{"$listSearchIndexes":{}}]}]}`, 0, 72, ""},
		{"5.0 does not have the command", createSearch, 13, 59, "no such command"},
		{"5.0 does not have the stage", listSearch, 13, 40324, "'$listSearchIndexes'"},
		{"a command without indexes", `{"createSearchIndexes":"c"}`, 0, 40414, ""},
		{"indexes is not a list", `{"createSearchIndexes":"c","indexes":1}`, 0, 14, ""},
		{"an index that is not a document", `{"createSearchIndexes":"c","indexes":[1]}`, 0, 14, ""},
		{"an index without definition", `{"createSearchIndexes":"c","indexes":[{"name":"x"}]}`, 0, 40414, ""},
		{"a name that is not a string", `{"createSearchIndexes":"c","indexes":[{"name":1,"definition":{}}]}`, 0, 14, ""},
		{"an index with an unknown field", `{"createSearchIndexes":"c","indexes":[{"definition":{},"x":1}]}`, 0, 40415, ""},
		{"a command with an unknown field", `{"dropSearchIndex":"c","x":1}`, 0, 40415, ""},
		{"an update without a definition", `{"updateSearchIndex":"c","name":"x"}`, 0, 40414, ""},
		{"a collection without a name", `{"dropSearchIndex":1,"name":"x"}`, 0, 73, ""},
		// fields that commands do not have, or need
		{"killCursors", `{"killCursors":"c","cursors":[{"$numberLong":"1"}]}`, 0, 0, ""},
		{"killCursors with a comment", `{"killCursors":"c","cursors":[{"$numberLong":"1"}],"comment":"enough"}`, 0, 0, ""},
		{"killCursors without cursors", `{"killCursors":"c"}`, 0, 40414, ""},
		{"killCursors with an unknown field", `{"killCursors":"c","cursors":[{"$numberLong":"1"}],"soon":true}`, 0, 40415, ""},
		{"getMore without a collection", `{"getMore":{"$numberLong":"1"}}`, 0, 40414, ""},
		{"listCollections in batches", `{"listCollections":1,"cursor":{"batchSize":1}}`, 0, 0, ""},
		{"listCollections with an unknown field of cursor", `{"listCollections":1,"cursor":{"size":1}}`, 0, 40415, ""},
		{"listIndexes in batches", `{"listIndexes":"c","cursor":{"batchSize":1}}`, 0, 0, ""},
		{"listIndexes with an unknown field of cursor", `{"listIndexes":"c","cursor":{"size":1}}`, 0, 40415, ""},
		{"renameCollection without a new name", `{"renameCollection":"db.c","$db":"admin"}`, 0, 40414, ""},
		{"renameCollection with an unknown field", `{"renameCollection":"db.c","to":"db.d","force":true,"$db":"admin"}`, 0, 40415, ""},
		// fields of later versions
		{"let in a find of 4.4", `{"find":"c","let":{"a":1}}`, 9, 9, ""},
		{"let in a find", `{"find":"c","let":{"a":1}}`, 13, 0, ""},
		{"sort in an update of 7.0", `{"update":"c","updates":[{"q":{},"u":{"a":1},"sort":{"a":1}}]}`, 21, 40415, ""},
		{"sort in an update of 8.0", `{"update":"c","updates":[{"q":{},"u":{"a":1},"sort":{"a":1}}]}`, 25, 0, ""},
		{"sort in an update of many", `{"update":"c","updates":[{"q":{},"u":{"$set":{"a":1}},"sort":{"a":1},"multi":true}]}`, 25, 9, ""},
		{"hint in a delete of 4.2", `{"delete":"c","deletes":[{"q":{},"limit":1,"hint":"_id_"}]}`, 8, 40415, ""},
		{"a document as comment in 4.2", `{"find":"c","comment":{"a":1}}`, 8, 9, ""},
	} {
		b := replicaSet(t)
		for _, s := range fixture {
			b.must(s)
		}
		before := docsOf(b.must(`{"listIndexes":"c"}`))
		b.server.Wire = cmp.Or(row.wire, b.server.Wire)
		r, err := b.do(row.command)
		var e *command.Error
		if errors.As(err, &e); codeOf(r, err) != row.code || row.text != "" && !strings.Contains(e.Message, row.text) {
			t.Errorf("%s: got %#v, want code %d and %q", row.reason, err, row.code, row.text)
		}
		if after := docsOf(b.must(`{"listIndexes":"c"}`)); row.code != 0 && after != before {
			t.Errorf("%s: the indexes are now %s", row.reason, after)
		}
	}
}

// TestViolations has a limit on the documents that it names.
func TestViolations(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":3,"x":1},{"_id":5},{"_id":6}]}`)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"up"}]}`)
	one := len(value.Encode(bson.D{{Key: "_id", Value: int32(1)}}))
	for most, want := range map[int]string{
		0:       `[ { ids: [ 5 ] } ] false`, // one at least
		3 * one: `[ { ids: [ 5, 6 ] }, { ids: [ 1 ] } ] false`,
		4 * one: `[ { ids: [ 5, 6 ] }, { ids: [ 1, 3 ] } ] true`,
	} {
		got, all := b.d.collection("db", "c").index("up").violations(b.d.collection("db", "c").docs, most)
		testkit.Equal(t, fmt.Sprint(most), fmt.Sprint(value.Text(got), " ", all), want)
	}
}
