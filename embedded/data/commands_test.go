package data

import (
	"fmt"
	"runtime"
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

// TestNoCommandTakesTheMemory runs what would double something again and again: each is refused, before
// it has taken much.
func TestNoCommandTakesTheMemory(t *testing.T) {
	doubled, unwound := "", ""
	for i := range 40 {
		doubled += `{"$set":{"a":["$a","$a"]}},`
		if i < 5 {
			unwound += fmt.Sprintf(`{"$set":{"x":[%s1],"b%d":1}},{"$unwind":"$x"},`, strings.Repeat("1,", 99), i)
		}
	}
	const field = `{"$setField":{"field":"a","input":"$wide","value":1}}`
	pipeline := func(stages string) string {
		return `{"aggregate":"c","cursor":{},"pipeline":[` + strings.TrimSuffix(stages, ",") + `]}`
	}
	where := func(script string) string {
		return `{"find":"c","filter":{"$where":"function() { var s = 'xxxxxxxx'; ` + script + ` }"}}`
	}
	for _, row := range []struct {
		reason, command string
		code            int32
	}{
		{"a document many times", pipeline(`{"$set":{"x":[` + field + strings.Repeat(","+field, 1024) + `]}}`), 146},
		{"a stage doubles what the one before has doubled", pipeline(doubled), 10334},
		{"a product of unwound arrays", pipeline(unwound), 292},
		{"a string of a script", where(`[` + strings.Repeat("1,", 60) + `1].forEach(x => { s = s + s; }); return true;`), 139},
		{"a pipeline of an update", `{"update":"c","updates":[{"q":{},"u":[` + strings.TrimSuffix(doubled, ",") + `]}]}`, 10334},
	} {
		t.Run(row.reason, func(t *testing.T) {
			b := replicaSet(t)
			wide := strings.Repeat(`"f":1,`, 1<<12)
			b.must(`{"insert":"c","documents":[{"_id":1,"a":"` + strings.Repeat("x", 1<<16) + `","wide":{` + wide + `"a":1}}]}`) // the limits are near
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			code := b.code(row.command)
			runtime.ReadMemStats(&after)
			testkit.Equal(t, "code", code, row.code)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1<<10 {
				t.Errorf("it took %d MB", took)
			}
		})
	}
}

// TestLogIsBoundedInBytes writes large documents.
func TestLogIsBoundedInBytes(t *testing.T) {
	var o oplog
	e := entry{new: &record{raw: make(bson.Raw, 1<<20)}}
	for i := range 1000 {
		e.ts.I = uint32(i)
		o.append(e)
		if o.bytes > 2*maxOplogBytes {
			t.Fatalf("%d bytes after %d entries", o.bytes, i+1)
		}
	}
	o.truncate(o.next() - 1)
	sum := 0
	for i := range o.entries {
		sum += o.entries[i].bytes()
	}
	if first, _ := o.at(o.first); sum != o.bytes || o.next() != 999 || first.ts.I != o.from.I+1 {
		t.Errorf("%d bytes of %d, next is %d, the first is %v after %v", o.bytes, sum, o.next(), first.ts, o.from)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	b := replicaSet(t)
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	for i := range 3 * maxSeen {
		b.d.session(fmt.Sprint(i))
	}
	if n := len(b.d.sessions); n > maxSeen {
		t.Errorf("%d sessions", n)
	}
}

// TestTimeWaitsForNoWrite asks for the time of a reply while something is written.
func TestTimeWaitsForNoWrite(t *testing.T) {
	b := replicaSet(t)
	b.d.clock.next(func(bson.Timestamp) bson.Timestamp { return bson.Timestamp{T: 1} }) // there would be a no-op
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	told := make(chan bson.Timestamp, 1)
	go func() { told <- b.d.OperationTime() }()
	testkit.Receive(t, "the time", told)
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
