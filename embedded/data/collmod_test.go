package data

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// TestIndexBecomesUnique is the way of an index from plain to unique and back.
func TestIndexBecomesUnique(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2,"x":1},{"_id":3,"x":2},{"_id":4,"x":[5,6]},{"_id":5,"x":6}]}`)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":-1},"name":"x_-1"}]}`)
	for _, step := range []struct {
		reason, command string
		code            int32
		reply           string // of a success
	}{
		{"not without the first step", `{"collMod":"c","index":{"name":"x_-1","unique":true}}`, 72, ""},
		{"what is doubled may be prepared", `{"collMod":"c","index":{"keyPattern":{"x":-1},"prepareUnique":true}}`, 0, `{ prepareUnique_old: false, prepareUnique_new: true }`},
		{"once more changes nothing", `{"collMod":"c","index":{"keyPattern":{"x":-1},"prepareUnique":true}}`, 0, `{}`},
		{"a new duplicate", `{"insert":"c","documents":[{"_id":9,"x":1}]}`, 11000, ""},
		{"one of several keys", `{"insert":"c","documents":[{"_id":9,"x":[7,2]}]}`, 11000, ""},
		{"an update to a duplicate", `{"update":"c","updates":[{"q":{"_id":3},"u":{"$set":{"x":6}}}]}`, 11000, ""},
		{"an upsert of a duplicate", `{"update":"c","updates":[{"q":{"_id":9},"u":{"$set":{"x":2}},"upsert":true}]}`, 11000, ""},
		{"a duplicate in a bulk", `{"bulkWrite":1,"ops":[{"insert":0,"document":{"_id":9,"x":1}}],"nsInfo":[{"ns":"db.c"}]}`, 0, ""},
		{"a duplicate that stays what it is", `{"update":"c","updates":[{"q":{"_id":2},"u":{"$set":{"y":1}}}]}`, 0, ""},
		{"a key that no one has", `{"insert":"c","documents":[{"_id":6,"x":7}]}`, 0, ""},
		{"the duplicates are in its way", `{"collMod":"c","index":{"name":"x_-1","unique":true}}`, 359, ""},
		{"which a dry run tells as well", `{"collMod":"c","index":{"name":"x_-1","unique":true},"dryRun":true}`, 359, ""},
		{"one holder of a key less", `{"delete":"c","deletes":[{"q":{"_id":1},"limit":1}]}`, 0, ""},
		{"the other one still has it", `{"insert":"c","documents":[{"_id":9,"x":1}]}`, 11000, ""},
		{"the other key, too", `{"delete":"c","deletes":[{"q":{"_id":5},"limit":1}]}`, 0, ""},
		{"a dry run says that it can be", `{"collMod":"c","index":{"name":"x_-1","unique":true},"dryRun":true}`, 0, `{}`},
		{"and changed nothing", `{"collMod":"c","index":{"name":"x_-1","prepareUnique":false}}`, 0, `{ prepareUnique_old: true, prepareUnique_new: false }`},
		{"prepared again", `{"collMod":"c","index":{"name":"x_-1","prepareUnique":true}}`, 0, ""},
		{"unique", `{"collMod":"c","index":{"name":"x_-1","unique":true}}`, 0, `{ unique_new: true }`},
		{"unique once more", `{"collMod":"c","index":{"name":"x_-1","unique":true}}`, 0, `{}`},
		{"a duplicate of what was there", `{"insert":"c","documents":[{"_id":9,"x":5}]}`, 11000, ""},
		{"a unique index needs no preparation", `{"collMod":"c","index":{"name":"x_-1","prepareUnique":true}}`, 0, `{}`},
		{"back", `{"collMod":"c","index":{"name":"x_-1","forceNonUnique":true}}`, 0, `{ forceNonUnique_new: true }`},
		{"duplicates are fine again", `{"insert":"c","documents":[{"_id":9,"x":5}]}`, 0, ""},
	} {
		r, err := b.do(step.command)
		if got := codeOf(t, r, err); got != step.code {
			t.Fatalf("%s: code %d, want %d", step.reason, got, step.code)
		}
		if got := value.Text(r); step.reply != "" && got != step.reply {
			t.Errorf("%s: %s, want %s", step.reason, got, step.reply)
		}
		if strings.Contains(step.command, "bulkWrite") {
			if n, _ := value.Field(r, "nErrors"); !value.Equal(n, int32(1)) {
				t.Errorf("%s: %s", step.reason, value.Text(r))
			}
		}
	}
	b.want("what is shown in the end", `{"listIndexes":"c"}`, `{ v: 2, key: { _id: 1 }, name: "_id_" } { v: 2, key: { x: -1 }, name: "x_-1" }`)
}

func codeOf(t testing.TB, r bson.D, err error) int32 {
	t.Helper()
	var e *command.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	if w, ok := value.Field(r, "writeErrors"); ok {
		code, _ := value.Field(w.(bson.A)[0].(bson.D), "code")
		return code.(int32)
	}
	return 0
}

// TestPreparedIndexInTransactions is about keys that are not committed yet.
func TestPreparedIndexInTransactions(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1","prepareUnique":true}]}`)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1}]}`)
	begin := `,"txnNumber":1,"autocommit":false,"startTransaction":true}`
	for _, row := range []struct {
		reason, command string
		code            int32
	}{
		{"a key of a transaction", `{"insert":"c","documents":[{"_id":2,"x":2}],` + lsid1 + begin, 0},
		{"the same of another one", `{"insert":"c","documents":[{"_id":3,"x":2}],` + lsid2 + begin, 112},
		{"outside of it", `{"insert":"c","documents":[{"_id":3,"x":2}],"maxTimeMS":1}`, 50},
		{"the index may not be changed", `{"collMod":"c","index":{"name":"x_1","unique":true},"maxTimeMS":1}`, 50},
		{"what was there before", `{"insert":"c","documents":[{"_id":4,"x":1}],` + lsid2 + strings.Replace(begin, "1", "2", 1), 11000},
		{"its commit", `{"commitTransaction":1,` + lsid1 + `,"txnNumber":1,"autocommit":false}`, 0},
		{"after that", `{"insert":"c","documents":[{"_id":3,"x":2}]}`, 11000},
	} {
		if got := b.code(row.command); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
	}
}

func TestViolations(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2,"x":2},{"_id":3,"x":1},{"_id":4,"x":[3,2]},{"_id":5},{"_id":6,"x":null},{"_id":7,"x":9}]}`)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":-1},"name":"down","prepareUnique":true},{"key":{"x":1},"name":"up","prepareUnique":true},
		{"key":{"x":1,"_id":1},"name":"both","prepareUnique":true},{"key":{"x":1},"name":"sparse","sparse":true,"prepareUnique":true}]}`)
	for _, row := range []struct{ reason, name, want string }{
		{"in the order of the index, missing as null", "up", `[ { ids: [ 5, 6 ] }, { ids: [ 1, 3 ] }, { ids: [ 2, 4 ] } ]`},
		{"of a descending one", "down", `[ { ids: [ 2, 4 ] }, { ids: [ 1, 3 ] }, { ids: [ 5, 6 ] } ]`},
		{"null is there, in a sparse one", "sparse", `[ { ids: [ 1, 3 ] }, { ids: [ 2, 4 ] } ]`},
		{"none", "both", ``},
	} {
		_, err := b.do(`{"collMod":"c","index":{"name":"` + row.name + `","unique":true},"dryRun":true}`)
		var e *command.Error
		if !errors.As(err, &e) {
			if row.want != "" {
				t.Errorf("%s: no error: %v", row.reason, err)
			}
			continue
		}
		v, _ := value.Field(e.Extra, "violations")
		if got := value.Text(v); e.Code != 359 || got != row.want {
			t.Errorf("%s: code %d, %s, want %s", row.reason, e.Code, got, row.want)
		}
	}
	x := b.d.collection("db", "c").index("up")
	one := len(value.Encode(bson.D{{Key: "_id", Value: int32(1)}}))
	for _, row := range []struct {
		reason string
		most   int
		want   string
		all    bool
	}{
		{"one at least", 0, `[ { ids: [ 5 ] } ]`, false},
		{"up to so many bytes", 3 * one, `[ { ids: [ 5, 6 ] }, { ids: [ 1 ] } ]`, false},
		{"as far as whole groups go", 4 * one, `[ { ids: [ 5, 6 ] }, { ids: [ 1, 3 ] } ]`, false},
		{"all", 6 * one, `[ { ids: [ 5, 6 ] }, { ids: [ 1, 3 ] }, { ids: [ 2, 4 ] } ]`, true},
	} {
		got, all := x.violations(b.d.collection("db", "c").docs, row.most)
		if value.Text(got) != row.want || all != row.all {
			t.Errorf("%s: %s, %v; want %s, %v", row.reason, value.Text(got), all, row.want, row.all)
		}
	}
}

// TestIndexOptionsAreChanged is collMod with the older options of an index.
func TestIndexOptionsAreChanged(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"},{"key":{"y":1},"name":"y_1","expireAfterSeconds":5}]}`)
	for _, row := range []struct{ reason, change, reply, shown string }{
		{"hidden", `"name":"x_1","hidden":true`, `{ hidden_old: false, hidden_new: true }`, `{ v: 2, key: { x: 1 }, name: "x_1", hidden: true }`},
		{"hidden already", `"name":"x_1","hidden":true`, `{}`, `{ v: 2, key: { x: 1 }, name: "x_1", hidden: true }`},
		{"seen again", `"name":"x_1","hidden":false`, `{ hidden_old: true, hidden_new: false }`, `{ v: 2, key: { x: 1 }, name: "x_1" }`},
		{"another time", `"keyPattern":{"y":1},"expireAfterSeconds":9`, `{ expireAfterSeconds_old: 5, expireAfterSeconds_new: 9 }`, `{ v: 2, key: { y: 1 }, name: "y_1", expireAfterSeconds: 9 }`},
		{"a time for the first time", `"name":"x_1","expireAfterSeconds":1`, `{ expireAfterSeconds_new: 1 }`, `{ v: 2, key: { x: 1 }, name: "x_1", expireAfterSeconds: 1 }`},
	} {
		if got := value.Text(b.must(`{"collMod":"c","index":{` + row.change + `}}`)); got != row.reply {
			t.Errorf("%s: %s, want %s", row.reason, got, row.reply)
		}
		if got := docs(t, b.must(`{"listIndexes":"c"}`)); !strings.Contains(got, row.shown) {
			t.Errorf("%s: %s, want %s in it", row.reason, got, row.shown)
		}
	}
}

func TestCollModRefusals(t *testing.T) {
	const now = 25
	for _, row := range []struct {
		reason, command string
		wire            int
		code            int32
	}{
		{"an index by name and key", `{"collMod":"c","index":{"name":"x_1","keyPattern":{"x":1},"hidden":true}}`, now, 72},
		{"an index by nothing", `{"collMod":"c","index":{"hidden":true}}`, now, 72},
		{"nothing to change", `{"collMod":"c","index":{"name":"x_1"}}`, now, 72},
		{"an option that indexes do not have", `{"collMod":"c","index":{"name":"x_1","sparse":true}}`, now, 40415},
		{"unique that is no boolean", `{"collMod":"c","index":{"name":"x_1","unique":"100"}}`, now, 14},
		{"index that is no document", `{"collMod":"c","index":1}`, now, 14},
		{"no index of this name", `{"collMod":"c","index":{"name":"z","hidden":true}}`, now, 27},
		{"no index of this key", `{"collMod":"c","index":{"keyPattern":{"z":1},"hidden":true}}`, now, 27},
		{"two indexes of this key", `{"collMod":"c","index":{"keyPattern":{"d":1},"hidden":true}}`, now, 181},
		{"no collection", `{"collMod":"z","index":{"name":"x_1","hidden":true}}`, now, 26},
		{"a view", `{"collMod":"v","index":{"name":"x_1","hidden":true}}`, now, 72},
		{"unique is not taken back so", `{"collMod":"c","index":{"name":"x_1","unique":false}}`, now, 2},
		{"nor so", `{"collMod":"c","index":{"name":"x_1","forceNonUnique":false}}`, now, 2},
		{"both ways", `{"collMod":"c","index":{"name":"x_1","unique":true,"forceNonUnique":true}}`, now, 72},
		{"prepareUnique with another option", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true,"hidden":true}}`, now, 72},
		{"prepareUnique with another change", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true},"validationLevel":"off"}`, now, 72},
		{"the index of _id is not hidden", `{"collMod":"c","index":{"name":"_id_","hidden":true}}`, now, 2},
		{"and expires nothing", `{"collMod":"c","index":{"name":"_id_","expireAfterSeconds":1}}`, now, 72},
		{"and stays unique", `{"collMod":"c","index":{"name":"_id_","forceNonUnique":true}}`, now, 0},
		{"several fields expire nothing", `{"collMod":"c","index":{"name":"xy","expireAfterSeconds":1}}`, now, 72},
		{"nor does a capped collection", `{"collMod":"capped","index":{"name":"x_1","expireAfterSeconds":1}}`, now, 72},
		{"a time before now", `{"collMod":"c","index":{"name":"x_1","expireAfterSeconds":-1}}`, now, 72},
		{"a dry run of something else", `{"collMod":"c","index":{"name":"x_1","hidden":true},"dryRun":true}`, now, 72},
		{"a dry run without an index", `{"collMod":"c","validationLevel":"off","dryRun":true}`, now, 72},
		{"a dry run of more", `{"collMod":"c","index":{"name":"p","unique":true},"validationLevel":"off","dryRun":true}`, now, 72},
		{"5.0 knows no prepareUnique", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true}}`, 13, 40415},
		{"4.4 says so in its own way", `{"collMod":"c","index":{"name":"x_1","prepareUnique":true}}`, 9, 72},
		{"4.4 knows hidden", `{"collMod":"c","index":{"name":"x_1","hidden":true}}`, 9, 0},
		{"4.2 does not", `{"collMod":"c","index":{"name":"x_1","hidden":true}}`, 8, 72},
		{"5.0 does not make such an index", `{"createIndexes":"c","indexes":[{"key":{"q":1},"name":"q","prepareUnique":true}]}`, 13, 197},
		{"5.0 knows no dry run", `{"collMod":"c","index":{"name":"x_1","hidden":true},"dryRun":true}`, 13, 40415},
	} {
		b := replicaSet(t)
		b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"},{"key":{"x":1,"y":1},"name":"xy"},{"key":{"p":1},"name":"p","prepareUnique":true},
			{"key":{"d":1},"name":"d"},{"key":{"d":1},"name":"e","partialFilterExpression":{"d":1}}]}`)
		b.must(`{"create":"capped","capped":true,"size":256}`)
		b.must(`{"createIndexes":"capped","indexes":[{"key":{"x":1},"name":"x_1"}]}`)
		b.must(`{"create":"v","viewOn":"c"}`)
		b.server.Wire = row.wire
		before := docs(t, b.must(`{"listIndexes":"c"}`))
		if got := b.code(row.command); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
		if after := docs(t, b.must(`{"listIndexes":"c"}`)); row.code != 0 && after != before {
			t.Errorf("%s: the indexes are now %s", row.reason, after)
		}
	}
}

// TestViolationsBehindMongos looks where a mongos tells what its shard found.
func TestViolationsBehindMongos(t *testing.T) {
	b := newBench(t, Options{ReplicaSet: true, Sharded: true, ShardName: "s", ShardHost: "s/h:1"})
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2,"x":1}]}`)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1","prepareUnique":true}]}`)
	r, err := b.do(`{"collMod":"c","index":{"name":"x_1","unique":true}}`)
	var e *command.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	const want = `violations: [ { ids: [ 1, 2 ] } ]`
	if got := value.Text(e.Extra); !strings.Contains(got, want) {
		t.Errorf("beside the error: %s", got)
	}
	if got := value.Text(r); !strings.Contains(got, want) || !strings.Contains(got, "code: 359") {
		t.Errorf("of the shard: %s", got)
	}
}
