package data

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// TestTransactionalWrites sees how often a write meets onPrimaryTransactionalWrite, and what
// stays of it. A dot of strikes is a commit that passes, a digit one that fails; x hangs up, too.
func TestTransactionalWrites(t *testing.T) {
	const insert, of, two = `{"insert":"c","documents":[{"_id":1},{"_id":2},{"_id":3}]`, `,RETRY(1,1)}`,
		`{"update":"c","updates":[{"q":{"_id":8},"u":{"$inc":{"x":1}}},{"q":{"_id":9},"u":{"$inc":{"x":1}}}]`
	for _, row := range []struct {
		reason, command string
		strikes         string // of the points in a row, then dots
		want            string // what became of it, and how often it committed or tried to
	}{
		{"a batch commits once", insert + of, ".", "n 3, tries 1: 8 9 1 2 3"},
		{"a batch that fails is stored one by one", insert + of, "1", "n 3, tries 4: 8 9 1 2 3"},
		{"the same, and an ordered one ends with its first error", insert + of, "11", "n 0, error 0, tries 2: 8 9"},
		{"an unordered one goes on", insert + `,"ordered":false` + of, "11", "n 2, error 0, tries 4: 8 9 2 3"},
		{"an interruption is thrown, unordered or not", insert + `,"ordered":false` + of, "13", "code 11600, tries 2: 8 9"},
		{"what hung up goes on", insert + of, "x", "hung up, n 3, tries 1: 8 9 1 2 3"},
		{"a batch with a key twice commits one by one", `{"insert":"c","ordered":false,"documents":[{"_id":1},{"_id":1},{"_id":2}]` + of, ".", "n 2, error 1, tries 2: 8 9 1 2"},
		{"a bad document ends a batch", `{"insert":"c","ordered":false,"documents":[{"_id":1},{"_id":[1]},{"_id":2}]` + of, ".", "n 2, error 1, tries 2: 8 9 1 2"},
		{"one document is no batch", `{"insert":"c","documents":[{"_id":1}]` + of, "1", "n 0, error 0, tries 1: 8 9"},
		{"a key that is there is found before the commit", `{"insert":"c","documents":[{"_id":8}]` + of, "1", "n 0, error 0, tries 0: 8 9"},
		{"statements of an update commit each for itself", two + of, "..", "n 2, tries 2: 8+1 9+1"},
		{"the first fails, and ends the command", two + of, "1", "n 0, error 0, tries 1: 8 9"},
		{"the second fails", two + of, ".1", "n 1, error 1, tries 2: 8+1 9"},
		{"an update that changes nothing does not commit", `{"update":"c","updates":[{"q":{"_id":8},"u":{"$set":{"_id":8}}}]` + of, "1", "n 1, tries 0: 8 9"},
		{"an upsert", `{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"_id":1}},"upsert":true}]` + of, "1", "n 0, error 0, tries 1: 8 9"},
		{"a delete", `{"delete":"c","deletes":[{"q":{"_id":8},"limit":1}]` + of, "1", "n 0, error 0, tries 1: 8 9"},
		{"findAndModify", `{"findAndModify":"c","query":{"_id":8},"remove":true` + of, "1", "code 1, tries 1: 8 9"},
		{"bulkWrite: inserts in a row are a batch", `{"bulkWrite":1,"nsInfo":[{"ns":"db.c"}],"ops":[{"insert":0,"document":{"_id":1}},{"insert":0,"document":{"_id":2}},
			{"update":0,"filter":{"_id":8},"updateMods":{"$inc":{"x":1}}},{"insert":0,"document":{"_id":3}}]` + of, ".", "tries 3: 8+1 9 1 2 3"},
		{"a write that cannot be retried does not ask", insert + "}", "1", "n 3, tries 0: 8 9 1 2 3"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			b := replicaSet(t)
			b.must(`{"insert":"c","documents":[{"_id":8},{"_id":9}]}`)
			tries, hungUp := 0, false
			strikes := row.strikes
			b.strikes = func(string) (failpoint.Failure, bool) {
				tries++
				var now string
				now, strikes = (strikes + ".")[:1], strings.TrimPrefix(strikes, (strikes + ".")[:1])
				f := failpoint.Failure{CloseConnection: now == "x", HasCode: now >= "1" && now <= "9", Code: map[string]int32{"1": 1, "3": 11600}[now]}
				return f, f.CloseConnection || f.HasCode
			}
			b.hangUp = func() { hungUp = true }
			before := b.d.oplog.next()
			reply, err := b.do(inSession(strings.Join(strings.Fields(row.command), " ")))
			var out []string
			if hungUp {
				out = append(out, "hung up")
			}
			if err != nil {
				out = append(out, fmt.Sprint("code ", codeOf(reply, err)))
			} else if n, ok := value.Field(reply, "n"); ok {
				out = append(out, fmt.Sprint("n ", n))
			}
			if errs, ok := value.Field(reply, "writeErrors"); ok {
				index, _ := value.Field(errs.(bson.A)[0].(bson.D), "index")
				out = append(out, fmt.Sprint("error ", index))
			}
			got := strings.Join(append(out, fmt.Sprint("tries ", tries)), ", ") + ":"
			changed := 0
			for _, r := range b.d.collection("db", "c").docs {
				id, _ := value.Field(r.doc(), "_id")
				x, touched := value.Field(r.doc(), "x")
				if got += fmt.Sprint(" ", id); touched {
					got += fmt.Sprint("+", x)
				}
				if n, _ := value.Whole(id); touched || n < 8 {
					changed++
				}
			}
			if got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			// What was undone is not in the log either.
			if logged := int(b.d.oplog.next() - before); logged != changed {
				t.Errorf("%d entries of the log for %d changes", logged, changed)
			}
		})
	}
}

// TestUndoneStatementsAreTriedAgain sends once more what did not commit.
func TestUndoneStatementsAreTriedAgain(t *testing.T) {
	const insert = `{"insert":"c","documents":[{"_id":1},{"_id":2}],RETRY(1,1)}`
	b := replicaSet(t)
	b.strikes = func(string) (failpoint.Failure, bool) { return failpoint.Failure{HasCode: true, Code: 11600}, true }
	if code := b.code(inSession(insert)); code != 11600 {
		t.Fatalf("code %d, want 11600", code)
	}
	b.strikes = nil
	b.must(inSession(insert))
	b.want("what was undone", `{"find":"c"}`, `{ _id: 1 } { _id: 2 }`)
}

// TestManyChangesThatWait has a statement meet a transaction in the middle of what it changes: it
// runs again when the transaction is over, and changes every document once.
func TestManyChangesThatWait(t *testing.T) {
	const update = `{"update":"c","updates":[{"q":{"_id":{"$lt":9}},"multi":true,"u":[{"$set":{"n":{"$add":["$n",1]},"k":{"$cond":[{"$eq":["$_id",2]},5,"$k"]}}}]}]}`
	for _, row := range []struct {
		reason, txn, command, end string
		code                      int32
		want                      string
	}{
		{"a key that is free again", `{"insert":"c","documents":[{"_id":9,"k":5}],BEGIN(1,1)}`, update, "abortTransaction", 0,
			`{ _id: 1, n: 1, k: 1 } { _id: 2, n: 1, k: 5 } { _id: 3, n: 1, k: 3 }`},
		{"a key that is taken: what came before stays", `{"insert":"c","documents":[{"_id":9,"k":5}],BEGIN(1,1)}`, update, "commitTransaction", 11000,
			`{ _id: 1, n: 1, k: 1 } { _id: 2, n: 0, k: 2 } { _id: 3, n: 0, k: 3 } { _id: 9, k: 5 }`},
		{"a document that was changed", `{"update":"c","updates":[{"q":{"_id":2},"u":{"$inc":{"n":10}}}],BEGIN(1,1)}`, update, "commitTransaction", 0,
			`{ _id: 1, n: 1, k: 1 } { _id: 2, n: 11, k: 5 } { _id: 3, n: 1, k: 3 }`},
		{"a document that is to be removed", `{"update":"c","updates":[{"q":{"_id":2},"u":{"$inc":{"n":10}}}],BEGIN(1,1)}`,
			`{"delete":"c","deletes":[{"q":{"n":0},"limit":0}]}`, "commitTransaction", 0, `{ _id: 2, n: 10, k: 2 }`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := replicaSet(t)
				b.must(`{"insert":"c","documents":[{"_id":1,"n":0,"k":1},{"_id":2,"n":0,"k":2},{"_id":3,"n":0,"k":3}]}`)
				b.must(`{"createIndexes":"c","indexes":[{"key":{"k":1},"name":"k","unique":true}]}`)
				before := docsOf(b.must(`{"find":"c"}`))
				b.must(inSession(row.txn))
				done := make(chan int32)
				go func() { done <- codeOf(b.do(row.command)) }()
				synctest.Wait()
				b.want("nothing is seen of what waits", `{"find":"c"}`, before)
				b.must(inSession(`{"` + row.end + `":1,IN(1,1)}`))
				if code := <-done; code != row.code {
					t.Errorf("code %d, want %d", code, row.code)
				}
				b.want("afterwards", `{"find":"c"}`, row.want)
			})
		})
	}
}
