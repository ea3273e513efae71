package data

import (
	"fmt"
	"strings"
	"testing"

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
