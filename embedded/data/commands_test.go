package data

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
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
