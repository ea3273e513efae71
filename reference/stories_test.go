package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestStories plays the stories in testdata.
func TestStories(t *testing.T) {
	testkit.PlayStories(t, "testdata/stories/*.txt", func(t *testing.T, s testkit.Story) string { return play(t, s.Text) })
}

// checkStory plays a story with one operation.
func checkStory(t *testing.T, set, reply, do, want string) {
	t.Helper()
	t.Run(set+" "+reply+" "+do, func(t *testing.T) {
		t.Parallel()
		text := fmt.Sprintf("client %s\nserver %s\n> %s\n", set, reply, strings.Join(strings.Fields(do), " "))
		testkit.Equal(t, "the story", play(t, text), text+"    "+want+"\n")
	})
}

// sends is an operation and the command that it sends.
type sends struct{ do, command string }

// reads are all retryable read operations.
var reads = []sends{
	{`collection.find {"filter":{}}`, "find"}, {`collection.findOne {"filter":{}}`, "find"},
	{`collection.aggregate {"pipeline":[]}`, "aggregate"}, {`database.aggregate {"pipeline":[]}`, "aggregate"},
	{`collection.count {"filter":{}}`, "count"}, {`collection.countDocuments {"filter":{}}`, "aggregate"},
	{`collection.estimatedDocumentCount`, "count"}, {`collection.distinct {"fieldName":"x","filter":{}}`, "distinct"},
	{`client.createChangeStream {"pipeline":[]}`, "aggregate"},
	{`database.createChangeStream {"pipeline":[]}`, "aggregate"},
	{`collection.createChangeStream {"pipeline":[]}`, "aggregate"}, {`client.listDatabases`, "listDatabases"},
	{`client.listDatabaseNames`, "listDatabases"}, {`client.listDatabaseObjects`, "listDatabases"},
	{`database.listCollections`, "listCollections"}, {`database.listCollectionNames`, "listCollections"},
	{`database.listCollectionObjects`, "listCollections"}, {`collection.listIndexes`, "listIndexes"},
	{`collection.listIndexNames`, "listIndexes"},
}

// retryableWrites are all supported write operations (Retryable Writes, "Supported Write Operations").
var retryableWrites = []sends{
	{"insert", "insert"}, {"insertMany", "insert"}, {`insertMany {"ordered":false}`, "insert"},
	{`collection.updateOne {"filter":{},"update":{"$set":{"a":1}}}`, "update"},
	{`collection.replaceOne {"filter":{},"replacement":{"a":1}}`, "update"},
	{`collection.deleteOne {"filter":{}}`, "delete"},
	{`collection.findOneAndDelete {"filter":{}}`, "findAndModify"},
	{`collection.findOneAndReplace {"filter":{},"replacement":{"a":1}}`, "findAndModify"},
	{`collection.findOneAndUpdate {"filter":{},"update":{"$set":{"a":1}}}`, "findAndModify"},
	{`collection.bulkWrite {"requests":[{"updateOne":{"filter":{},"update":{"$set":{"a":1}}}}]}`, "update"},
	{`collection.bulkWrite {"requests":[{"deleteOne":{"filter":{}}}],"ordered":false}`, "delete"},
	{"clientBulk", "bulkWrite"},
}

// plainWrites are never retried, and have no transaction number ("Unsupported Write Operations").
var plainWrites = []sends{
	{"updateMany", "update"}, {`collection.deleteMany {"filter":{}}`, "delete"},
	{`collection.bulkWrite {"requests":[{"updateOne":{"filter":{},"update":{"$set":{"a":1}}}},
		{"updateMany":{"filter":{},"update":{"$set":{"a":1}}}}]}`, "update"},
	{`collection.bulkWrite {"requests":[{"deleteMany":{"filter":{}}}],"ordered":false}`, "delete"},
	{`client.clientBulkWrite {"models":[{"insertOne":{"namespace":"db.coll","document":{"_id":1}}},
		{"deleteMany":{"namespace":"db.coll","filter":{}}}]}`, "bulkWrite"},
	{`collection.aggregate {"pipeline":[{"$out":"o"}]}`, "aggregate"},
	{`collection.aggregate {"pipeline":[{"$merge":{"into":"o"}}]}`, "aggregate"},
	{`collection.createIndex {"keys":{"a":1}}`, "createIndexes"},
	{`collection.mapReduce {"map":{"$code":"f"},"reduce":{"$code":"f"},"out":"o"}`, "mapReduce"},
	{`collection.mapReduce {"map":{"$code":"f"},"reduce":{"$code":"f"},"out":{"merge":"o"}}`, "mapReduce"},
	{"create", "create"}, {`database.dropCollection {"collection":"made"}`, "drop"},
	{`database.modifyCollection {"collection":"made"}`, "collMod"}, {`collection.rename {"to":"o"}`, "renameCollection"},
	{`collection.dropIndex {"name":"a_1"}`, "dropIndexes"}, {"collection.dropIndexes", "dropIndexes"},
	{"dropDatabase", "dropDatabase"},
	{`collection.createSearchIndex {"model":{"definition":{}}}`, "createSearchIndexes"},
	{`collection.createSearchIndexes {"models":[{"definition":{}}]}`, "createSearchIndexes"},
	{`collection.updateSearchIndex {"name":"a","definition":{}}`, "updateSearchIndex"},
	{`collection.dropSearchIndex {"name":"a"}`, "dropSearchIndex"},
	{`database.runCommand {"commandName":"insert","command":{"insert":"coll","documents":[{"_id":1}]}}`, "insert"},
}

func TestReadsAreRetriedOnEveryTopology(t *testing.T) {
	for _, set := range []string{"single", "replicaset members=3", "sharded", "load-balanced"} {
		for _, fault := range []string{"close", "91", "10107"} {
			for _, r := range reads {
				checkStory(t, set+" untimed", r.command+"="+fault, r.do, r.command+" "+r.command)
			}
		}
	}
}

// The error of a first attempt advances the operationTime of a session, and the second attempt reads after it.
func TestRetriesReadAfterTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(t, "replicaset", 1)
		b := open(t, s.uri("retryReads=true"), Options{dial: s.dial}, nil)
		b.entity("session", "session", d("client", "client"))
		b.perform("@find") // the session has an operationTime
		s.on("find", fails(91))
		b.perform("@find")
		testkit.Check(t, b.Close(t.Context(), "client"))
		var times []uint32
		for _, command := range s.commands("find")[1:] {
			at, _, _ := command.Lookup("readConcern", "afterClusterTime").TimestampOK()
			times = append(times, at)
		}
		if len(times) != 2 || times[0] == 0 || times[1] <= times[0] {
			t.Errorf("the attempts read after %v: want two increasing times", times)
		}
	})
}

func TestWritesAreRetried(t *testing.T) {
	for _, set := range []string{"replicaset", "sharded", "load-balanced"} {
		for _, fault := range []string{"close", "91/w", "concern:91/w", "4711/w", "write:91/w"} {
			for _, w := range retryableWrites {
				checkStory(t, set+" untimed show=txnNumber", w.command+"="+fault, w.do, fmt.Sprintf("%s/1 %[1]s/1", w.command))
			}
		}
	}
}

func TestWritesThatAreNeverRetried(t *testing.T) {
	for _, fault := range []struct{ set, step, want string }{{"", "close", "network"}, {"", "91/w", "91/w"},
		{" wire=8", "91", "91"}} {
		never := func(set string, writes []sends) {
			for _, w := range writes {
				old := fault.set
				if w.command == "bulkWrite" { // old servers do not have it
					old = ""
				}
				checkStory(t, set+old+" show=txnNumber", w.command+"="+fault.step, w.do, w.command+"/- !"+fault.want)
			}
		}
		never("replicaset", plainWrites)
		never("retryWrites=false", retryableWrites)
		never("single", retryableWrites)
	}
}

// TestOverloadRetriesNeedAnOption tests that retries after overload errors need retryReads for reads, and retryWrites
// for writes (Client Backpressure, "Overload retry policy").
func TestOverloadRetriesNeedAnOption(t *testing.T) {
	inline := sends{`collection.mapReduce {"map":{"$code":"f"},"reduce":{"$code":"f"},"out":{"inline":1}}`, "mapReduce"}
	search := sends{"collection.listSearchIndexes", "aggregate"}
	check := func(needs, other string, operations []sends) {
		for _, o := range operations {
			if strings.Contains(o.do, "runCommand") { // needs both
				continue
			}
			checkStory(t, "jitter=0 "+needs+"=false", o.command+"=overload", o.do, o.command+" !462/or")
			checkStory(t, "jitter=0 "+other+"=false", o.command+"=overload", o.do, o.command+" "+o.command)
		}
	}
	check("retryReads", "retryWrites", append(slices.Clip(reads), inline, search))
	check("retryWrites", "retryReads", slices.Concat(retryableWrites, plainWrites))
}

// TestChangeStreamsResume tests the resumable codes of servers before 4.4.
func TestChangeStreamsResume(t *testing.T) {
	for _, code := range []int{6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436} {
		transcript := play(t, fmt.Sprintf("client wire=8 untimed\nserver aggregate=cursor:7,cursor:9 getMore=%d killCursors=ok\n> watch\n> change\n> change\n", code))
		if !strings.HasSuffix(transcript, "> change\n    getMore killCursors aggregate\n") {
			t.Errorf("after %d:\n%s", code, transcript)
		}
	}
}
