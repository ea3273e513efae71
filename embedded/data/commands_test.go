package data

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// fixture is the database that the commands below find.
var fixture = []string{
	`{"insert":"c","documents":[{"_id":1}]}`,
	`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"},{"key":{"x":1,"y":1},"name":"xy"},{"key":{"p":1},"name":"p","prepareUnique":true},
		{"key":{"d":1},"name":"d"},{"key":{"d":1},"name":"e","partialFilterExpression":{"d":1}}]}`,
	`{"create":"clustered","clusteredIndex":{"key":{"_id":1},"unique":true,"name":"by id"}}`,
	`{"create":"capped","capped":true,"size":256}`,
	`{"createIndexes":"capped","indexes":[{"key":{"x":1},"name":"x_1"}]}`,
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

// TestViolations has a limit on the documents that it names.
func TestViolations(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":3,"x":1},{"_id":5},{"_id":6}]}`)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"up"}]}`)
	one := len(value.Encode(bson.D{{Key: "_id", Value: int32(1)}}))
	for most, want := range map[int]string{
		0:       `[ { ids: [ 5 ] } ] false`, // one at least
		3 * one: `[ { ids: [ 5, 6 ] }, { ids: [ 1 ] } ] false`,
		4 * one: `[ { ids: [ 5, 6 ] }, { ids: [ 1, 3 ] } ] true`,
	} {
		got, all := b.d.collection("db", "c").index("up").violations(b.d.collection("db", "c").docs, most)
		testkit.Equal(t, fmt.Sprint(most), fmt.Sprint(value.Text(got), " ", all), want)
	}
}
