package suggest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	for _, tt := range []struct{ reason, word, words, want string }{
		{"letters are swapped", "sahrded", "single replicaset sharded", "sharded"},
		{"another case", "testrunner", "testRunner other", "testRunner"},
		{"a beginning", "replica", "single replicaset sharded", "replicaset"},
		{"the beginning of two", "find", "findOne findMany", ""},
		{"two edits", "commandStartEvent", "commandStartedEvent commandFailedEvent", "commandStartedEvent"},
		{"equally close to two", "rum", "run sum", ""},
		{"letters are missing", "findOneUpdate", "findOneAndUpdate findOneAndDelete", "findOneAndUpdate"},
		{"letters of two are missing", "findOneAnd", "findOneAndUpdate findOneAndDelete", ""},
		{"few letters of a longer word", "ping", "mapping", ""},
		{"the same letters after another one", "insert", "bulkInsert", ""},
		{"three edits", "insertMany", "insertOne", ""},
		{"half of a short word", "ping", "find", ""},
		{"one edit of a short word", "fnid", "find", "find"},
		{"no word", "", "a", ""},
	} {
		if got := Word(tt.word, strings.Fields(tt.words)); got != tt.want {
			t.Errorf("%s: %q means %q, want %q", tt.reason, tt.word, got, tt.want)
		}
	}
	if got := Hint("a", []string{"a", "ab"}); got != "" {
		t.Errorf("a word that is in the list means another one%s", got)
	}
}
