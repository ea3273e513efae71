package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestTransactionalWrites checks how often a write evaluates onPrimaryTransactionalWrite, and which changes remain. A
// case begins with the results of the evaluations: a dot is a commit that succeeds, as do all after the last one; a
// digit is one that fails; x also closes the connection. DOCUMENTS(3,100) is three documents of 100 bytes.
func TestTransactionalWrites(t *testing.T) {
	words := regexp.MustCompile(`DOCUMENTS\(.*?\)`)
	testkit.PlayCases(t, "testdata/cases/commits.txt", func(t *testing.T, in string) string {
		b := replicaSet(t)
		b.must(`{"insert":"c","documents":[{"_id":8},{"_id":9}]}`)
		tries, hungUp := 0, false
		strikes, text, _ := strings.Cut(in, " ")
		text = words.ReplaceAllStringFunc(text, func(word string) string {
			var n, size int
			_, err := fmt.Sscanf(word, "DOCUMENTS(%d,%d)", &n, &size)
			testkit.Check(t, err)
			docs := make([]string, n)
			for i := range docs {
				docs[i] = fmt.Sprintf(`{"_id":%d,"v":"%s"}`, 10+i, strings.Repeat("v", size-22))
			}
			return strings.Join(docs, ",")
		})
		b.strikes = func(string) (failpoint.Failure, bool) {
			tries++
			var now string
			now, strikes = (strikes + ".")[:1], strings.TrimPrefix(strikes, (strikes + ".")[:1])
			f := failpoint.Failure{CloseConnection: now == "x", HasCode: now >= "1" && now <= "9",
				Code: map[string]int32{"1": 1, "2": 112, "3": 11600, "4": 225}[now]}
			return f, f.CloseConnection || f.HasCode
		}
		b.hangUp = func() { hungUp = true }
		history := b.d.History()
		before := history.Next()
		reply, err := b.do(inSession(text))
		var out []string
		if hungUp {
			out = append(out, "hung up")
		}
		if err != nil {
			out = append(out, fmt.Sprint("code ", codeOf(reply, err)))
		} else if n, ok := value.Field(reply, "n"); ok {
			out = append(out, fmt.Sprint("n ", n))
		}
		if errs := value.As[bson.A](reply, "writeErrors"); len(errs) > 0 {
			out = append(out, fmt.Sprint("error ", value.Get(errs[0].(bson.D), "index")))
		}
		got := strings.Join(append(out, fmt.Sprint("tries ", tries)), ", ") + ":"
		changed, prefix := 0, got
		_, records := b.d.NewWork(t.Context(), time.Time{}, 0).Records("db", "c")
		for _, r := range records {
			id := value.Get(r.Document(), "_id")
			x, updated := value.Field(r.Document(), "x")
			if got += fmt.Sprint(" ", id); updated {
				got += fmt.Sprint("+", x)
			}
			if n, _ := value.Int64(id); updated || n != 8 && n != 9 {
				changed++
			}
		}
		if len(records) > 20 {
			got = fmt.Sprint(prefix, " ", len(records), " documents")
		}
		history = b.d.History()
		testkit.Equal(t, "oplog entries", int(history.Next()-before), changed)
		return got
	})
}
