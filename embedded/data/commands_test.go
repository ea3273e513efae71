package data

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// fixture is the database that the commands below find.
var fixture = []string{
	`{"insert":"c","documents":[{"_id":1}]}`,
	`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"},{"key":{"x":1,"y":1},"name":"xy"},{"key":{"p":1},"name":"p","prepareUnique":true}]}`,
	`{"create":"v","viewOn":"c"}`,
}

// TestCommands plays commands that are refused, and the nearest that are not,
// after "wire 13" in that version. What is refused leaves the indexes as they were.
func TestCommands(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/commands.txt", func(t *testing.T, in string) string {
		b := replicaSet(t)
		for _, s := range fixture {
			b.must(s)
		}
		before := docsOf(b.must(`{"listIndexes":"c"}`))
		if version, ok := strings.CutPrefix(in, "wire "); ok {
			version, in, _ = strings.Cut(version, " ")
			b.server.Wire, _ = strconv.Atoi(version)
		}
		r, err := b.do(in)
		code := codeOf(r, err)
		if code == 0 {
			return "ok"
		}
		testkit.Equal(t, "the indexes", docsOf(b.must(`{"listIndexes":"c"}`)), before)
		return strings.TrimSpace(fmt.Sprint("error ", code, " ", messageOf(r, err)))
	})
}

// $$NOW is the same throughout a command, however long that takes.
func TestNowIsOneTime(t *testing.T) {
	b := newBench(t, Options{})
	var fields strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&fields, `"f%d":"$$NOW",`, i)
	}
	b.must(`{"insert":"c","documents":[{"_id":1}]}`)
	b.must(`{"update":"c","updates":[{"q":{},"u":[{"$set":{` + strings.TrimSuffix(fields.String(), ",") + `}}]}]}`)
	times := map[string]bool{}
	for _, field := range strings.Split(docsOf(b.must(`{"find":"c","projection":{"_id":0}}`)), ",") {
		_, v, _ := strings.Cut(field, ":")
		times[strings.Trim(v, " {}")] = true
	}
	testkit.Equal(t, fmt.Sprintf("different times: %.60v", times), len(times), 1)
}

func batchOf(reply bson.D) (batch []bson.Raw) {
	c, _ := value.Field(reply, "cursor")
	cursor, _ := c.(bson.D)
	for _, k := range []string{"firstBatch", "nextBatch"} {
		if v, ok := value.Field(cursor, k); ok {
			batch = v.([]bson.Raw)
		}
	}
	return batch
}

// An event that is too large for a document ends the stream.
func TestLargeEvents(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c","changeStreamPreAndPostImages":{"enabled":true}}`)
	b.must(`{"insert":"c","documents":[{"_id":1,"value":"` + strings.Repeat("q", 10<<20) + `"}]}`)
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocumentBeforeChange":"required"}}],"cursor":{}}`)
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"value":"` + strings.Repeat("z", 10<<20) + `"}}}]}`)
	if got := b.code(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c","maxTimeMS":1}`, cursorID(open))); got != 10334 {
		t.Errorf("code %d", got)
	}
}

func TestTimeOfAClient(t *testing.T) {
	b := replicaSet(t)
	before := b.d.OperationTime()
	told := bson.Timestamp{T: before.T + 5, I: 3}
	b.d.ClusterTime(told)
	if got := b.d.ClusterTime(before); got != told || b.d.OperationTime() != before {
		t.Errorf("the time is %v after a client has heard of %v", got, told)
	}
	b.must(`{"insert":"c","documents":[{}]}`)
	if got := b.d.OperationTime(); !got.After(told) {
		t.Errorf("a write has the time %v, a client has heard of %v", got, told)
	}
}
