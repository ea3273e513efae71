package data

import "testing"

// Fields that a command does not have are refused, and those that it needs are
// demanded, also by commands of which drivers seldom hear an error.
func TestStrictCommands(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	for _, r := range []struct {
		reason, command string
		want            int32
	}{
		{"cursors to be killed", `{"killCursors":"c","cursors":[{"$numberLong":"1"}]}`, 0},
		{"cursors to be killed for a reason", `{"killCursors":"c","cursors":[{"$numberLong":"1"}],"comment":"enough"}`, 0},
		{"no cursors to be killed", `{"killCursors":"c"}`, 40414},
		{"cursors to be killed soon", `{"killCursors":"c","cursors":[{"$numberLong":"1"}],"soon":true}`, 40415},
		{"a cursor of nothing", `{"getMore":{"$numberLong":"1"}}`, 40414},
		{"a list of collections in batches", `{"listCollections":1,"cursor":{"batchSize":1}}`, 0},
		{"a list of collections in another way", `{"listCollections":1,"cursor":{"size":1}}`, 40415},
		{"a list of indexes in batches", `{"listIndexes":"c","cursor":{"batchSize":1}}`, 0},
		{"a list of indexes in another way", `{"listIndexes":"c","cursor":{"size":1}}`, 40415},
		{"a new name that is none", `{"renameCollection":"db.c","$db":"admin"}`, 40414},
		{"a new name by force", `{"renameCollection":"db.c","to":"db.d","force":true,"$db":"admin"}`, 40415},
	} {
		if got := b.code(r.command); got != r.want {
			t.Errorf("%s: code %d, want %d", r.reason, got, r.want)
		}
	}
}
