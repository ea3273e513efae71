package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tell plays stories, which have to go as they are written.
func tell(t *testing.T, stories []story) {
	t.Helper()
	for _, st := range stories {
		t.Run(st.why, func(t *testing.T) {
			t.Parallel()
			if got := st.play(t); got != st.want {
				t.Errorf("%s: %s of %s:\ngot  %s\nwant %s", st.set, st.reply, st.do, got, st.want)
			}
		})
	}
}

// sends is an operation and the command that it sends.
type sends struct{ do, command string }

// reads are all retryable read operations, and the command that each sends.
var reads = []sends{
	{`collection.find {"filter":{}}`, "find"}, {`collection.findOne {"filter":{}}`, "find"},
	{`collection.aggregate {"pipeline":[]}`, "aggregate"}, {`database.aggregate {"pipeline":[]}`, "aggregate"},
	{`collection.count {"filter":{}}`, "count"}, {`collection.countDocuments {"filter":{}}`, "aggregate"},
	{`collection.estimatedDocumentCount`, "count"}, {`collection.distinct {"fieldName":"x","filter":{}}`, "distinct"},
	{`client.createChangeStream {"pipeline":[]}`, "aggregate"}, {`database.createChangeStream {"pipeline":[]}`, "aggregate"},
	{`collection.createChangeStream {"pipeline":[]}`, "aggregate"}, {`client.listDatabases`, "listDatabases"},
	{`client.listDatabaseNames`, "listDatabases"}, {`client.listDatabaseObjects`, "listDatabases"},
	{`database.listCollections`, "listCollections"}, {`database.listCollectionNames`, "listCollections"},
	{`database.listCollectionObjects`, "listCollections"}, {`collection.listIndexes`, "listIndexes"},
	{`collection.listIndexNames`, "listIndexes"},
}

// retryableWrites are all supported write operations (Retryable Writes,
// "Supported Write Operations").
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

// plainWrites are never retried, and have no transaction number ("Unsupported
// Write Operations").
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
	{"create", "create"}, {`database.dropCollection {"collection":"made"}`, "drop"},
	{`database.runCommand {"commandName":"insert","command":{"insert":"coll","documents":[{"_id":1}]}}`, "insert"},
}

func TestReadsAreRetriedOnEveryTopology(t *testing.T) {
	var all []story
	for _, set := range []string{"single", "replicaset members=3", "sharded", "load-balanced"} {
		for _, fault := range []string{"close", "91", "10107"} {
			for _, r := range reads {
				all = append(all, story{set + " " + fault + " " + r.do, set, r.do, r.command + "=" + fault, r.command + " " + r.command})
			}
		}
	}
	tell(t, all)
}

func TestWritesAreRetried(t *testing.T) {
	var all []story
	for _, set := range []string{"replicaset", "sharded", "load-balanced"} {
		for _, fault := range []string{"close", "91/w", "concern:91/w", "4711/w", "write:91/w"} {
			for _, w := range retryableWrites {
				all = append(all, story{set + " " + fault + " " + w.do, set + " show=txnNumber", w.do, w.command + "=" + fault,
					fmt.Sprintf("%s/1 %[1]s/1", w.command)})
			}
		}
	}
	tell(t, all)
}

func TestWritesThatAreNeverRetried(t *testing.T) {
	var all []story
	for _, fault := range []struct{ set, step, want string }{{"", "close", "network"}, {"", "91/w", "91/w"}, {" wire=8", "91", "91"}} {
		add := func(set, do, command string) {
			if command == "bulkWrite" {
				fault.set = ""
			}
			all = append(all, story{set + fault.set + " " + fault.step + " " + do, set + fault.set + " show=txnNumber", do, command + "=" + fault.step,
				command + "/- !" + fault.want})
		}
		for _, w := range plainWrites {
			add("replicaset", w.do, w.command)
		}
		for _, w := range retryableWrites {
			add("retryWrites=false", w.do, w.command)
			add("single", w.do, w.command)
		}
	}
	tell(t, append(all,
		story{"w: 0 has neither number nor session", "show=txnNumber?,lsid?", `insert {"writeConcern":{"w":0}}; ping`, "", "insert/-/- ping/-/yes"},
		story{"a network error in a transaction", "", "start; @insert", "insert=close", "insert !network/t"},
		story{"a labelled error in a transaction", "", "start; @insert", "insert=91/w", "insert !91/w"},
		story{"an operation in a transaction has no read concern of its own", "message",
			`start {"readConcern":{"level":"local"}}; @find {"readConcern":{"level":"majority"}}`, "",
			"!argument: Cannot set read concern after starting a transaction"},
		story{"nor has runCommand", "message", `start; @ping {"readConcern":{"level":"majority"}}`, "",
			"!argument: Cannot set read concern after starting a transaction"},
		story{"nor has an operation a write concern", "", `start; @insert {"writeConcern":{"w":1}}; @dropDatabase {"writeConcern":{"w":1}}`, "",
			"!argument !argument"},
		story{"outside it has one", "show=readConcern.level", `@find {"readConcern":{"level":"majority"}}`, "", "find/majority"}))
}

// TestWriteLabels: labels come from the server since 4.4, and before that from
// the driver, by code.
func TestWriteLabels(t *testing.T) {
	const again, once = "insert insert", "insert"
	tell(t, []story{
		{"a listed code of a mongod before 4.4", "wire=8", "insert", "insert=91*2", "insert 500ms insert !91/w"},
		{"ExceededTimeLimit counts too", "wire=8", "insert", "insert=262*2", again + " !262/w"},
		{"another code does not", "wire=8", "insert", "insert=64*2", once + " !64"},
		{"ReadConcernMajorityNotAvailableYet is for reads alone", "wire=8", "insert", "insert=134*2", once + " !134"},
		{"a listed code of a mongos before 4.4", "sharded wire=8", "insert", "insert=91*2", again + " !91/w"},
		{"a listed code since 4.4 without the label", "", "insert", "insert=91*2", once + " !91"},
		{"retryWrites is off", "wire=8 retryWrites=false", "insert", "insert=91*2", once + " !91"},
		{"the write concern error of a mongod", "wire=8", "insert", "insert=concern:91*2", "insert 500ms insert !91+91/w"},
		{"the write concern error of a mongos", "sharded wire=8", "insert", "insert=concern:91*2", "insert !91+91"},
		{"a write concern error since 4.4 without the label", "", "insert", "insert=concern:91*2", "insert !91+91"},
		{"WriteConcernFailed is not listed", "wire=8", "insert", "insert=concern:64*2", "insert !64+64"},
		{"a write error never counts", "wire=8", "insert", "insert=write:91*2", "insert !91[0]"},
		{"nor beside a write concern error", "wire=8", "insert", "insert=write:91&64*2", "insert !91+64[0]"},
		{"a write concern error beside a write error does", "wire=8", "insert", "insert=write:11000&91*2", "insert 500ms insert !11000+91/w[0]"},
		{"a network error on an old server", "wire=8", "insert", "insert=close*2", "insert 500ms insert !network/w"},
		{"a network error on a new server", "", "insert", "insert=close*2", again + " !network/w"},
		{"a network error with retryWrites off", "retryWrites=false", "insert", "insert=close*2", once + " !network"},
		{"a network error on a standalone", "single", "insert", "insert=close*2", once + " !network"},
	})
}

func TestWhichErrorIsRaised(t *testing.T) {
	var all []story
	for _, set := range []string{"replicaset", "sharded"} {
		all = append(all,
			story{set + ": both may have written: the second", set, "insert", "insert=91/w,10107/w", "insert insert !10107/w"},
			story{set + ": the second was no attempt to write", set, "insert", "insert=91/w,10107/wn", "insert insert !91/w"},
			story{set + ": neither was: the first", set, "insert", "insert=91/wn,10107/wn", "insert insert !91/wn"},
			story{set + ": the first was not", set, "insert", "insert=91/wn,10107/w", "insert insert !10107/w"},
			story{set + ": the second is not retryable", set, "insert", "insert=91/w,42", "insert insert !42"},
			story{set + ": the second is not retryable, and was no attempt", set, "insert", "insert=91/w,42/n", "insert insert !91/w"})
	}
	tell(t, append(all,
		story{"of a read the second, and the report says why", "rules", "find", "find=91,11600",
			"find find !11600; select R1; send R5; select R11 R22 R50; send R5; return error R11 R20 R35"},
		story{"an old storage engine is explained (prose test 1)", "message", "insert", "insert=20:Transaction-numbers-are-refused",
			"insert !20: This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."},
		story{"another message of it stays", "message", "insert", "insert=20:Cannot-do-that", "insert !20: Cannot do that"},
		story{"another code stays", "message", "insert", "insert=21:Transaction-numbers", "insert !21: Transaction numbers"},
		story{"without a number it stays", "message retryWrites=false", "insert", "insert=20:Transaction-numbers", "insert !20: Transaction numbers"},
		story{"of runCommand it stays", "message", plainWrites[10].do, "insert=20:Transaction-numbers", "insert !20: Transaction numbers"}))
}

// TestNumbersAndSessions: numbers grow over all commands that have one, whatever
// comes between them, and a retry has that of the first attempt.
func TestNumbersAndSessions(t *testing.T) {
	var do []string
	for _, w := range slices.Concat(retryableWrites, plainWrites) {
		do = append(do, w.do)
	}
	const many = `insertMany {"documents":[{"_id":0},{"_id":1},{"_id":2},{"_id":3},{"_id":4}],"ordered":false}`
	tell(t, []story{
		{"numbers grow, and only a retry has one again", "show=txnNumber", strings.Join(do, "; "), "update=91/w",
			"insert/1 insert/2 insert/3 update/4 update/4 update/5 delete/6 " +
				"findAndModify/7 findAndModify/8 findAndModify/9 update/10 delete/11 bulkWrite/12 update/- delete/- update/- delete/- bulkWrite/- " +
				"aggregate/- aggregate/- createIndexes/- create/- drop/- insert/-"},
		{"each group of a bulk that may have a number has its own", "show=txnNumber", `bulk {"requests":[{"insertOne":{"document":{}}},
			{"updateOne":{"filter":{},"update":{"$set":{"a":1}}}},{"deleteMany":{"filter":{}}},{"insertOne":{"document":{}}}]}`,
			"", "insert/1 update/2 delete/- insert/3"},
		{"a retryable write", "jitter=0 show=txnNumber,startTransaction", "insert", "insert=overload*2", "insert/1/- insert/1/- insert/1/-"},
		{"a write that has no number", "jitter=0 show=txnNumber", "updateMany", "update=overload*2", "update/- update/- update/-"},
		{"a read", "jitter=0 show=txnNumber", "find", "find=overload*2", "find/- find/- find/-"},
		{"the first command of a transaction starts it again", "jitter=0 show=txnNumber,startTransaction", "start; @insert; @insert", "insert=overload*2",
			"insert/1/true insert/1/true insert/1/true insert/1/-"},
		{"so does one that reads", "jitter=0 show=txnNumber,startTransaction", "start; @find; @find", "find=overload*2",
			"find/1/true find/1/true find/1/true find/1/-"},
		{"many documents are split where the server takes no more", "batch=2 show=documents,txnNumber", "ping; " + many, "insert=ok,91/w,write:11000",
			"ping/-/- insert/[2]/1 insert/[2]/2 insert/[2]/2 insert/[1]/3 !11000[2]"},
		{"a failed retry interrupts a bulk", "", `bulk {"ordered":false}`, "insert=91/w*2", "insert insert !91/w"},
		{"one that fails in its write concern too", "", `bulk {"ordered":false}`, "insert=concern:91/w*2", "insert insert !91+91/w"},
		{"a retry that succeeds does not", "", `bulk {"ordered":false}`, "insert=91/w", "insert insert update"},
		{"a write error does not interrupt unordered writes", "", `bulk {"ordered":false}`, "insert=write:11000", "insert update !11000[0]"},
		{"it does interrupt ordered ones", "", `bulk`, "insert=write:11000", "insert !11000[0]"},
		{"a write concern error does not", "", `bulk`, "insert=concern:64", "insert update !64+64"},
		{"any other error does", "", `bulk {"ordered":false}`, "insert=42", "insert !42"},
	})
}

// TestClientBulksAreSplit: their results and errors have the places of the
// whole.
func TestClientBulksAreSplit(t *testing.T) {
	const set = "batch=2 results show=ops,nsInfo,txnNumber"
	of := func(more string) string {
		var models []string
		for i := range 5 {
			models = append(models, fmt.Sprintf(`{"insertOne":{"namespace":"db.c%d","document":{"_id":%d}}}`, i/3, i))
		}
		return `ping; clientBulk {"verboseResults":true,"models":[` + strings.Join(models, ",") + "]" + more + "}"
	}
	ordered, unordered := of(""), of(`,"ordered":false`)
	tell(t, []story{
		{"all well", set, ordered, "bulkWrite=bulk:2,bulk:2,bulk:1", "ping/-/-/- = bulkWrite/[2]/[1]/1 bulkWrite/[2]/[2]/2 bulkWrite/[1]/[1]/3 =0,1,2,3,4"},
		{"an error ends ordered writes", set, ordered, "bulkWrite=bulk:2,bulkbad:1",
			"ping/-/-/- = bulkWrite/[2]/[1]/1 bulkWrite/[2]/[2]/2 !client-bulk-write[3] =0,1,2"},
		{"and not unordered ones", set, unordered, "bulkWrite=bulk:2,bulkbad:1,bulk:1",
			"ping/-/-/- = bulkWrite/[2]/[1]/1 bulkWrite/[2]/[2]/2 bulkWrite/[1]/[1]/3 !client-bulk-write[3] =0,1,2,4"},
		{"a retry has the number and the writes of the first attempt", set, ordered, "bulkWrite=bulk:2,close,bulk:2,bulk:1",
			"ping/-/-/- = bulkWrite/[2]/[1]/1 bulkWrite/[2]/[2]/2 bulkWrite/[2]/[2]/2 bulkWrite/[1]/[1]/3 =0,1,2,3,4"},
		{"a failed retry ends it", set, unordered, "bulkWrite=bulk:2,91/w*2",
			"ping/-/-/- = bulkWrite/[2]/[1]/1 bulkWrite/[2]/[2]/2 bulkWrite/[2]/[2]/2 !91/w =0,1"},
		{"so does an error of the first command", set, unordered, "bulkWrite=42", "ping/-/-/- = bulkWrite/[2]/[1]/1 !42"},
	})
}

func TestTransactionEndsAreRetried(t *testing.T) {
	const set, w0 = "jitter=0 show=txnNumber,writeConcern.w", `start {"writeConcern":{"w":1}}; @insert; commit`
	tell(t, []story{
		{"a commit asks for a majority then", set, "start; @insert; commit", "commit=close*2", "insert/1/- commit/1/- commit/1/majority !network/wu"},
		{"whatever retryWrites says", set + " retryWrites=false", "start; @insert; commit", "commit=91/w*2",
			"insert/1/- commit/1/- commit/1/majority !91/wu"},
		{"after a write concern error", set, "start; @insert; commit", "commit=concern:91/w*2", "insert/1/- commit/1/- commit/1/majority !91+91/wu"},
		{"a write in a transaction has no write concern of its own", set, `start; @insert {"writeConcern":{"w":1}}`, "", "!argument"},
		{"an abort ignores errors", set, "start; @insert; abort", "abort=close*2", "insert/1/- abort/1/- abort/1/-"},
		{"whatever retryWrites says, an abort too", set + " retryWrites=false", "start; @insert; abort", "abort=91/w*2", "insert/1/- abort/1/- abort/1/-"},
		{"an abort after a write concern error", set, "start; @insert; abort", "abort=concern:91/w*2", "insert/1/- abort/1/- abort/1/-"},
		{"overload errors alone leave the write concern", set, w0, "commit=overload*2", "insert/1/- commit/1/1 commit/1/1 commit/1/1"},
		{"another error does not", set, w0, "commit=91/w", "insert/1/- commit/1/1 commit/1/majority"},
		{"another error after an overload error", set, w0, "commit=overload,91/w", "insert/1/- commit/1/1 commit/1/1 commit/1/majority"},
		{"an overload error after another one", set, w0, "commit=91/w,overload", "insert/1/- commit/1/1 commit/1/majority commit/1/majority"},
		{"SystemOverloadedError alone does not say that nothing was written", set, w0, "commit=91/wo", "insert/1/- commit/1/1 commit/1/majority"},
	})
}

// TestCursors: getMore and killCursors keep to their server, and behind a load
// balancer to their connection; only overload errors have them sent again.
func TestCursors(t *testing.T) {
	const find, cursor = `find {"batchSize":1}`, "find=cursor:7"
	var codes []story // before the label
	for _, code := range []int{6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436} {
		codes = append(codes, story{fmt.Sprintf("a change stream resumes after %d", code), "wire=8 untimed", "watch; change; change",
			fmt.Sprintf("aggregate=cursor:7,cursor:9 getMore=%d killCursors=ok", code), "aggregate getMore killCursors aggregate"})
	}
	tell(t, append(codes, []story{
		{"it does not after 280", "wire=8", "watch; change; change", "aggregate=cursor:7 getMore=280/c", "aggregate getMore !280/c"},
		{"the session of a cursor is nobody else's", "show=session", "cursor; ping; next; next", cursor, "find/0 ping/1 getMore/0"},
		{"a getMore that fails", "", find, cursor + " getMore=batch:7,close", "find getMore getMore !network"},
		{"on the same mongos", "sharded show=place", find, cursor + " getMore=batch:7,close", "find/0 getMore/0 getMore/0 !network"},
		{"on the same connection", "load-balanced show=conn", find, cursor + " getMore=batch:7,close", "find/0 getMore/0 getMore/0 !network"},
		{"getMore", "", "cursor; next; next", cursor + " getMore=overload*2", "find getMore 200ms getMore 400ms getMore"},
		{"getMore, to the end", "", "cursor; next; next", cursor + " getMore=overload*9", "find getMore 200ms getMore 400ms getMore !462/or"},
		{"getMore is a read", "retryReads=false", "cursor; next; next", cursor + " getMore=overload*9", "find getMore !462/or"},
		{"getMore is not a write", "retryWrites=false", "cursor; next; next", cursor + " getMore=overload*2", "find getMore 200ms getMore 400ms getMore"},
		{"killCursors", "", "cursor; next; close", cursor + " killCursors=overload*2", "find killCursors 200ms killCursors 400ms killCursors"},
		{"killCursors, to the end", "", "cursor; next; close", cursor + " killCursors=overload*9", "find killCursors 200ms killCursors 400ms killCursors"},
		{"killCursors and maxAdaptiveRetries", "maxAdaptiveRetries=1", "cursor; next; close", cursor + " killCursors=overload*9",
			"find killCursors 200ms killCursors"},
		{"a change stream resumes after a network error", "show=pipeline.0.$changeStream.resumeAfter._data", "watch; change; change",
			"aggregate=cursor:7,cursor:9 getMore=close", "aggregate/- getMore/- aggregate/token7"},
		{"after the label", "", "watch; change; change", "aggregate=cursor:7,cursor:9 getMore=280/c", "aggregate getMore killCursors aggregate"},
		{"after CursorNotFound", "", "watch; change; change", "aggregate=cursor:7,cursor:9 getMore=43", "aggregate getMore aggregate"},
		{"before anything has come it resumes from its time", "show=pipeline.0.$changeStream.startAtOperationTime?", "watch; change",
			"aggregate=empty:7,cursor:9 getMore=43", "aggregate/- getMore/- aggregate/yes"},
		{"a negative batch size is a single batch", "show=batchSize,singleBatch", `find {"batchSize":-2}`, "", "find/2/true"},
		{"and not without the label", "", "watch; change; change", "aggregate=cursor:7,cursor:9 getMore=280", "aggregate getMore !280"},
	}...))
}

func TestServersOfAttempts(t *testing.T) {
	const both = `ping {"readPreference":{"mode":"primary"}}; ping {"readPreference":{"mode":"secondary"}}; find`
	const two = "members=2 jitter=0 show=member readPreference=primaryPreferred enableOverloadRetargeting="
	const out, slow = `collection.aggregate {"pipeline":[{"$out":"o"}]}`, "members=2 readPreference=secondaryPreferred show=member,$readPreference.mode "
	tell(t, []story{
		{"a sharded retry goes to another mongos", "sharded show=place", "find", "find=6", "find/0 find/1"},
		{"an overloaded member is not avoided", two + "false", both, "find=overload", "ping/0 ping/1 find/0 find/0"},
		{"but for the option", two + "true", both, "find=overload", "ping/0 ping/1 find/0 find/1"},
		{"no other error has it avoided", two + "true", both, "find=134", "ping/0 ping/1 find/0 find/0"},
		{"a state change is looked at at once: not primary", "single heartbeat=1h", "find", "find=10107", "find find"},
		{"the server is shutting down, so that its pool is cleared too", "single heartbeat=1h", "find", "find=91", "find find"},
		{"the only mongos is recovering", "sharded members=1 heartbeat=1h", "find", "find=11600", "find find"},
		{"before 5.0 a pipeline that writes waits for the primary", slow + "wire=8", out, "0:hello=1500ms+ok", "1.5s aggregate/0/-"},
		{"4.4 too", slow + "wire=9", out, "0:hello=1500ms+ok", "1.5s aggregate/0/-"},
		{"since 5.0 it goes to the secondary", slow + "wire=13", out, "0:hello=1h+ok", "aggregate/1/secondaryPreferred"},
		{"with its read preference", slow + "wire=25", out, "0:hello=1h+ok", "aggregate/1/secondaryPreferred"},
	})
}

func TestTimeoutMS(t *testing.T) {
	const pool = "maxPoolSize=1 heartbeat=1h "
	tell(t, []story{
		{"a read is retried until the deadline", "timeoutMS=5000 untimed show=maxTimeMS?", "find", "find=91*3,close,91",
			"find/yes find/yes find/yes find/yes find/yes find/yes"},
		{"the client ends what takes longer", "timeoutMS=50", "find", "find=300ms+ok", "find 50ms !network/timeout"},
		{"a write is retried with one number", "timeoutMS=15000 untimed show=txnNumber", "insert", "insert=91/w,close,concern:91/w,10107/w",
			"insert/1 insert/1 insert/1 insert/1 insert/1"},
		{"MaxTimeMSExpired in a reply", "timeoutMS=15000", "insert", "insert=50", "insert !50/timeout"},
		{"in a write error", "timeoutMS=15000", "insert", "insert=write:50", "insert !50/timeout[0]"},
		{"in a write concern error", "timeoutMS=15000", "insert", "insert=concern:50", "insert !50+50/timeout"},
		{"in a write concern error beside a write error", "timeoutMS=15000", "insert", "insert=write:11000&50", "insert !11000+50/timeout[0]"},
		{"the time passes before an error comes", "timeoutMS=100", "insert", "insert=300ms+91/w", "insert 100ms !network/w/timeout"},
		{"the time passes before the connection ends", "timeoutMS=100", "insert", "insert=300ms+close", "insert 100ms !network/w/timeout"},
		{"check-out has what is left of serverSelectionTimeoutMS", pool + "timeoutMS=60000 serverSelectionTimeoutMS=500", "~find; ping", "find=5s+ok",
			"find 500ms !connection-check-out/timeout"},
		{"waitQueueTimeoutMS does not count", pool + "timeoutMS=60000 waitQueueTimeoutMS=10", "~find; ping", "find=300ms+ok", "find ping"},
		{"but does without timeoutMS, whose timeout that is not", pool + "waitQueueTimeoutMS=10", "~find; ping", "find=5s+ok",
			"find 10ms !connection-check-out"},
		{"nor does it leave the result of a commit unknown", pool + "waitQueueTimeoutMS=10", "start; @insert; ~find; commit", "find=5s+ok",
			"insert find 10ms !connection-check-out"},
		{"closing a cursor has timeoutMS anew, also if that is for its life", "timeoutMS=1000 untimed show=maxTimeMS", "cursor; next; next; close",
			"find=300ms+cursor:7 getMore=400ms+batch:7", "find/1000 getMore/- killCursors/1000"},
		{"or is over", "timeoutMS=1000 untimed show=maxTimeMS", "cursor; next; next; close", "find=cursor:7 getMore=5s+ok",
			"find/1000 getMore/- !network/timeout killCursors/1000"},
		{"or its own", "timeoutMS=1000 show=maxTimeMS", `cursor; close {"timeoutMS":50}`, "find=cursor:7", "find/1000 killCursors/50"},
		{"a change stream, too", "timeoutMS=1000 show=maxTimeMS", `watch; close`, "aggregate=cursor:7", "aggregate/1000 killCursors/1000"},
		{"with its own", "show=maxTimeMS", `watch; close {"timeoutMS":50}`, "aggregate=cursor:7", "aggregate/- killCursors/50"},
		{"0 ends nothing", "timeoutMS=1000 show=maxTimeMS", `watch; close {"timeoutMS":0}`, "aggregate=cursor:7", "aggregate/1000 killCursors/-"},
		{"the abort of endSession has the client's", "timeoutMS=1000 show=maxTimeMS", "start; @insert; session.endSession", "", "insert/1000 abort/1000"},
		{"a commit in a callback has what is left to withTransaction", "untimed inside=@insert,commit show=maxTimeMS", `withTransaction {"timeoutMS":1000}`,
			"insert=300ms+ok", "insert/1000 commit/700"},
		{"serverSelectionTimeoutMS does not without it", pool + "serverSelectionTimeoutMS=500", "~find; ping", "find=1s+ok", "find ping"},
		{"a selection under timeoutMS ends as a timeout", "heartbeat=1h timeoutMS=60000 serverSelectionTimeoutMS=500", "find", "hello=1h+ok",
			"500ms !server-selection/timeout"},
		{"and not without it", "heartbeat=1h serverSelectionTimeoutMS=500", "find", "hello=1h+ok", "500ms !server-selection"},
		{"nor does a handshake", "single user heartbeat=1h connectTimeoutMS=50 retryReads=false", "find", "saslStart=1h+ok", "saslStart 50ms !network"},
		{"which is one under timeoutMS", "single user heartbeat=1h connectTimeoutMS=50 timeoutMS=60000 retryReads=false", "find", "saslStart=1h+ok",
			"saslStart 50ms !network/timeout"},
	})
}

func TestDropDatabase(t *testing.T) {
	const set = "w=2 readPreference=secondary show=$db,writeConcern.w,lsid?,txnNumber?,readConcern.afterClusterTime?,$readPreference?"
	tell(t, []story{
		{"the client's write concern", set, "dropDatabase", "", "dropDatabase/other/2/yes/-/-/-"},
		{"its own", set, `dropDatabase {"writeConcern":{"w":1}}`, "", "dropDatabase/other/1/yes/-/-/-"},
		{"in a session, and after what the session knows", set, "@dropDatabase; @dropDatabase", "",
			"dropDatabase/other/2/yes/-/-/- dropDatabase/other/2/yes/-/yes/-"},
		{"an error of the server", "", "dropDatabase", "dropDatabase=20", "dropDatabase !20"},
		{"one that would be retried of a write that can", "", "dropDatabase", "dropDatabase=91/w", "dropDatabase !91/w"},
		{"a network error", "", "dropDatabase", "dropDatabase=close", "dropDatabase !network"},
		{"a write concern error", "", "dropDatabase", "dropDatabase=concern:64", "dropDatabase !64+64"},
	})
}

func TestPlainCommands(t *testing.T) {
	tell(t, []story{
		{"a declared API goes with every command", `api="version":"1" show=apiVersion,apiStrict?,apiDeprecationErrors?`, "ping", "", "ping/1/-/-"},
		{"so do its flags", `api="version":"1","strict":true,"deprecationErrors":false show=apiStrict,apiDeprecationErrors`, "ping", "", "ping/true/false"},
		{"a generic command", "", "ping", "ping=close", "ping !network"},
		{"mapReduce", "", `collection.mapReduce {"map":{"$code":"f"},"reduce":{"$code":"f"},"out":{"inline":1}}`, "mapReduce=close", "mapReduce !network"},
		{"an unknown argument is refused", "", `find {"filtre":{}}; ping`, "", "!unsupported ping"},
		{"so is an unknown operation", "", `collection.fly; ping`, "", "!unsupported ping"},
		{"a read with retryReads off", "retryReads=false", "find", "find=close", "find !network"},
	})
}

func TestOverload(t *testing.T) {
	const ended = " !462/or"
	tell(t, []story{
		{"prose test 1: jitter 0 retries without delay", "jitter=0", "insert", "insert=overload*9", "insert insert insert" + ended},
		{"prose test 1: jitter 1 waits 200 and 400 ms", "", "insert", "insert=overload*9", "insert 200ms insert 400ms insert" + ended},
		{"delays that are not slept are decided", "backoff=none delays", "insert", "insert=overload*9", "insert insert insert" + ended + " [200 400]"},
		{"prose test 3: MAX_RETRIES is 2", "", "find", "find=overload*9", "find 200ms find 400ms find" + ended},
		{"prose test 4: maxAdaptiveRetries 1", "maxAdaptiveRetries=1", "find", "find=overload*9", "find 200ms find" + ended},
		{"no delay is above MAX_BACKOFF", "maxAdaptiveRetries=8", "find", "find=overload*9",
			"find 200ms find 400ms find 800ms find 1.6s find 3.2s find 6.4s find 10s find 10s find" + ended},
		{"prose test 5: the server's base of 50 ms", "", "insert", "insert=overload:50*9", "insert 100ms insert 200ms insert" + ended},
		{"a base as a long", "", "insert", "insert=overload:50L*9", "insert 100ms insert 200ms insert" + ended},
		{"a base that not every error has", "delays", "insert", "insert=overload:7,overload", "insert 14ms insert 400ms insert [14 400]"},
		{"a base of 0 does not count", "", "insert", "insert=overload:0", "insert 200ms insert"},
		{"updateMany", "", "updateMany", "update=overload*2", "update 200ms update 400ms update"},
		{"runCommand", "", "ping", "ping=overload*2", "ping 200ms ping 400ms ping"},
		{"retryable as a read and overloaded: wait, twice at most", "", "find", "find=91/o*9", "find 200ms find 400ms find !91/o"},
		{"another error after an overload is retried at once", "", "find", "find=overload,91*2", "find 200ms find find !91"},
		{"no write was performed: the error before is raised", "", "updateMany", "update=overload,2/n", "update 200ms update" + ended},
		{"retryReads off: a read", "retryReads=false", "find", "find=overload*9", "find" + ended},
		{"retryReads off: runCommand", "retryReads=false", "ping", "ping=overload", "ping" + ended},
		{"retryWrites off: a write that is never retryable", "retryWrites=false", "create", "create=overload", "create" + ended},
		{"timeoutMS: MAX_RETRIES holds all the same", "timeoutMS=60000", "find", "find=overload*9", "find 200ms find 400ms find" + ended},
		{"timeoutMS: a backoff past the deadline is not begun, and no timeout is raised", "timeoutMS=15000", "find", "find=overload:5000*9",
			"find 10s find !462/or"},
		{"timeoutMS: a backoff up to the deadline leaves no time to send", "timeoutMS=20000 maxAdaptiveRetries=5", "find", "find=overload:5000*9",
			"find 10s find 10s !462/or/timeout"},
		{"timeoutMS 0 ends nothing", "timeoutMS=0", "find", "find=overload:5000*9", "find 10s find 10s find" + ended},
	})
}

// TestWithTransaction holds the prose tests of the Convenient API for
// Transactions, and lets each command of a transaction back off by itself.
func TestWithTransaction(t *testing.T) {
	const do, under = "withTransaction", `withTransaction {"timeoutMS":60000}`
	tell(t, []story{
		{"without jitter nothing waits", "jitter=0", do, "commit=251/t*3", "insert commit insert commit insert commit insert commit"},
		{"5 ms · 1.5^n, 500 ms at most", "untimed delays", do, "commit=251/t*13", strings.Repeat("insert commit ", 14) +
			"[7.5 11.25 16.875 25.3125 37.96875 56.953125 85.429687 128.144531 192.216796 288.325195 432.487792 500 500]"},
		{"delays that are not slept", "backoff=none", do, "commit=251/t*2", "insert commit insert commit insert commit"},
		{"the callback is transient, and time is over", "message jitter=0 callback=251/tw pass=120s", do, "",
			"insert 2m0s abort !timeout/tw: no time is left to try the transaction again: mine"},
		{"the next backoff would outlast the time", "callback=251/tw pass=119995ms", do, "", "insert 1m59.995s abort !timeout/tw"},
		{"a commit is not known, and time is over", "jitter=0 pass=120s", do, "commit=64/u", "insert 2m0s commit !timeout/u"},
		{"a commit is transient, and time is over", "jitter=0 pass=120s", do, "commit=251/t", "insert 2m0s commit !timeout/t"},
		{"timeoutMS is over", "jitter=0 callback=251/tw pass=60s", under, "", "insert 1m0s abort !timeout/tw/timeout"},
		{"an error of the callback's own is not late", "message jitter=0 callback=mine pass=200s", do, "", "insert 3m20s abort !mine: mine"},
		{"a commit past its maxTimeMS is not tried again", "", do, "commit=50", "insert commit !50/u"},
		{"a commit that is not known is tried again", "", do, "commit=64/u", "insert commit commit"},
		{"a transient commit starts anew", "", do, "commit=251/t", "insert commit 8ms insert commit"},
		{"an overload error that is not transient is raised", "", do, "commit=overload*3", "insert commit 200ms commit 400ms commit !462/or"},
		{"overload of its first command", "", do, "insert=overload*2", "insert 200ms insert 400ms insert commit"},
		{"of the commit", "", do, "commit=overload*2", "insert commit 200ms commit 400ms commit"},
		{"of both, under timeoutMS", "", under, "insert=overload commit=overload", "insert 200ms insert commit 200ms commit"},
		{"transient as well: the commands first, then the transaction", "", do, "insert=462/ort*3",
			"insert 200ms insert 400ms insert abort 8ms insert commit"},
		{"one deadline for all", "", `withTransaction {"timeoutMS":15000}`, "insert=overload:5000 commit=overload:5000",
			"insert 10s insert commit !462/or"},
	})
}

// TestPoliciesInTheLoop tells stories under dated policies.
func TestPoliciesInTheLoop(t *testing.T) {
	const december, first = "policy=client-backpressure@2025-12 ", "policy=retryable-writes@2018-03-14 "
	const on, scarce = first + "retryWrites=true ", december + "jitter=0 bucket=1"
	const do, reads24 = "withTransaction", "policy=retryable-reads@2024 "
	tell(t, []story{
		{"five retries, 100 ms before the first", december, "insert", "insert=overload*9",
			"insert 100ms insert 200ms insert 400ms insert 800ms insert 1.6s insert !462/or"},
		{"maxAdaptiveRetries is unknown", december + "maxAdaptiveRetries=1", "find", "find=overload*3", "find 100ms find 200ms find 400ms find"},
		{"so is baseBackoffMS", december, "find", "find=overload:7", "find 100ms find"},
		{"retryReads does not count", december + "retryReads=false", "find", "find=overload", "find 100ms find"},
		{"retryWrites does not count", december + "retryWrites=false", "create", "create=overload", "create 100ms create"},
		{"timeoutMS: the limit holds", december + "timeoutMS=60000", "find", "find=overload*9",
			"find 100ms find 200ms find 400ms find 800ms find 1.6s find !462/or"},
		{"another error after an overload", december, "find", "find=overload,91", "find 100ms find find"},
		{"three tokens are three retries, and none for the next operation", december + "jitter=0 bucket=3", "find; find; find", "find=overload*9",
			"find find find find !462/or find !462/or find !462/or"},
		{"a retry that succeeds gives its token back, others get none of it", scarce, "find; find; find", "find=overload,ok,overload*9",
			"find find find find !462/or find !462/or"},
		{"a token of ten successes", scarce, strings.Repeat("find; ", 12) + "find", "find=overload*2,ok*10,overload*9",
			"find find !462/or find find find find find find find find find find find find !462/or find !462/or"},
		{"retryWrites is false if it is not set", first, "insert", "insert=close", "insert !network"},
		{"a code", on, "insert", "insert=10107", "insert insert"},
		{"a code that came later", on, "insert", "insert=262/w", "insert !262/w"},
		{"a write concern error with any listed code", on, "insert", "insert=concern:64", "insert insert"},
		{"a write concern error whose message says so", on, "insert", "insert=concern:17:not-master", "insert insert"},
		{"a message", on, "insert", "insert=17:not-master-and-no-slave-either", "insert insert"},
		{"a label", on, "insert", "insert=4711/w", "insert !4711/w"},
		{"overload", on, "insert", "insert=overload", "insert !462/or"},
		{"no read is retried", on, "find", "find=close", "find !network"},
		{"the bulkWrite command came in 2024", on, "clientBulk", "bulkWrite=close", "bulkWrite !network"},
		{"one retry under timeoutMS, for more would send the number too often", on + "timeoutMS=60000 show=txnNumber", "insert", "insert=91*5",
			"insert/1 insert/1 !91"},
		{"2026-06-17: the exponent of withTransaction is one less", "policy=retryable-reads@2026", do, "commit=251/t*2",
			"insert commit 5ms insert commit 8ms insert commit"},
		{"2024: withTransaction does not wait", reads24, do, "commit=251/t*2", "insert commit insert commit insert commit"},
		{"2024: when its time is over, the error is raised as it is", reads24 + "callback=251/t pass=120s", do, "", "insert 2m0s abort !251/t"},
		{"2024: any other attempt of a commit asks for a majority", reads24 + "show=writeConcern.w",
			`start {"writeConcern":{"w":1}}; @insert; commit`, "commit=91/wor", "insert/- commit/1 commit/majority"},
		{"2018: a network error is retried as today", on, "insert", "insert=close", "insert insert"},
		{"2018: and has no label", on, "insert", "insert=close*2", "insert insert !network"},
		{"2018: a write concern error with another code", on, "insert", "insert=concern:100", "insert !100+100"},
		{"2018: another message", on, "insert", "insert=17:not-primary", "insert !17"},
	})
}

// TestConnections tells what becomes of pools, their connections, and monitors.
func TestConnections(t *testing.T) {
	tell(t, []story{
		{"events interleave in the order in which they happen", "events", "find", "find=close",
			"find find: ready out find> find! missed cleared in gone ready out find> find< in | gone closed"},
		{"a server that refuses connections is overloaded: its pool stays", "single events", "find", "dial=close*9",
			"600ms !network/or: ready gone gone gone | closed"},
		{"it is asked again", "single events", "find", "dial=close",
			"200ms find: ready gone out find> find< in | out endSessions> endSessions< in gone closed"},
		{"endSessions is sent again to a server that is overloaded", "single events", "find", "endSessions=overload*9",
			"find: ready out find> find< in | out endSessions> endSessions! in out endSessions> endSessions! in out endSessions> endSessions! in gone closed"},
		{"and not after another error", "single events", "find", "endSessions=91",
			"find: ready out find> find< in | out endSessions> endSessions! cleared in gone closed"},
		{"a monitor rests until an operation needs a server after a handshake failed", "single user events heartbeat=1h retryReads=false", "find; find",
			"saslStart=close",
			"saslStart !network saslStart find: ready cleared gone missed | ready out find> find< in | out endSessions> endSessions< in gone closed"},
		{"nobody waits for the stream of a server that does not stream", "wire=8 retryReads=false", "find", "find=close", "find !network"},
		{"nor of one that is polled", "serverMonitoringMode=poll heartbeat=1h retryReads=false", "find", "find=close", "find !network"},
		{"the first check that times out interrupts what is in use", "events connectTimeoutMS=100 heartbeatFrequencyMS=100 retryReads=false", "find",
			"find=1h+ok await=400ms+ok",
			"find 200ms !network: ready out find> missed interrupted find! in gone | closed"},
	})
}
