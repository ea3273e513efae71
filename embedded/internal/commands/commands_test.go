package commands

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// fixture creates the collections of TestCommands.
var fixture = []string{
	`{"insert":"c","documents":[{"_id":1}]}`,
	`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"},{"key":{"x":1,"y":1},"name":"xy"},{"key":{"p":1},"name":"p","prepareUnique":true}]}`,
	`{"create":"v","viewOn":"c"}`,
}

// TestCommands plays invalid commands and similar valid ones. "wire 13" before a command selects a server version. An
// error must not change the indexes.
func TestCommands(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/commands.txt", func(t *testing.T, in string) string {
		b := replicaSet(t)
		for _, s := range fixture {
			b.must(s)
		}
		before := docsOf(b.must(`{"listIndexes":"c"}`))
		if version, ok := strings.CutPrefix(in, "wire "); ok {
			version, in, _ = strings.Cut(version, " ")
			n, _ := strconv.Atoi(version)
			b.reports(n)
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

// $$NOW is constant during a command.
func TestNowIsConstant(t *testing.T) {
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

func batchOf(reply bson.D) []bson.Raw {
	cursor := value.As[bson.D](reply, "cursor")
	return append(value.As[[]bson.Raw](cursor, "firstBatch"), value.As[[]bson.Raw](cursor, "nextBatch")...)
}

// An event that exceeds the maximum size ends the stream.
func TestLargeEvents(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c","changeStreamPreAndPostImages":{"enabled":true}}`)
	b.must(`{"insert":"c","documents":[{"_id":1,"value":"` + strings.Repeat("q", 10<<20) + `"}]}`)
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocumentBeforeChange":"required"}}],"cursor":{}}`)
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"value":"` + strings.Repeat("z", 10<<20) + `"}}}]}`)
	if got := b.code(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c","maxTimeMS":1}`,
		cursorID(open))); got != 10334 {
		t.Errorf("code %d", got)
	}
}

func TestClusterTimeOfAClient(t *testing.T) {
	b := replicaSet(t)
	before := b.d.OperationTime()
	client := bson.Timestamp{T: before.T + 5, I: 3}
	b.d.ClusterTime(client)
	if got := b.d.ClusterTime(before); got != client || b.d.OperationTime() != before {
		t.Errorf("the cluster time is %v, want the client's %v", got, client)
	}
	b.must(`{"insert":"c","documents":[{}]}`)
	if got := b.d.OperationTime(); !got.After(client) {
		t.Errorf("a write has the time %v, want one after the client's %v", got, client)
	}
}
