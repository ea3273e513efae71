package data

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestMemoryIsLimited runs commands that build large values. Each must fail before it has allocated much.
func TestMemoryIsLimited(t *testing.T) {
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
		{"copies of a document", pipeline(`{"$set":{"x":[` + field + strings.Repeat(","+field, 1024) + `]}}`), 146},
		{"a field that every stage doubles", pipeline(doubled), 10334},
		{"a product of unwound arrays", pipeline(unwound), 292},
		{"a string that a script doubles", where(`[` + strings.Repeat("1,", 60) + `1].forEach(x => { s = s + s; }); return true;`), 139},
		{"a field that every stage of an update doubles", `{"update":"c","updates":[{"q":{},"u":[` + strings.TrimSuffix(doubled, ",") + `]}]}`, 10334},
	} {
		t.Run(row.reason, func(t *testing.T) {
			b := replicaSet(t)
			wide := strings.Repeat(`"f":1,`, 1<<12)
			b.must(`{"insert":"c","documents":[{"_id":1,"a":"` + strings.Repeat("x", 1<<16) + `","wide":{` + wide + `"a":1}}]}`) // close to the limits
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			code := b.code(row.command)
			runtime.ReadMemStats(&after)
			testkit.Equal(t, "code", code, row.code)
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 1<<10 {
				t.Errorf("allocated %d MB", allocated)
			}
		})
	}
}

func TestOplogSizeIsLimited(t *testing.T) {
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

func TestSessionsAreLimited(t *testing.T) {
	b := replicaSet(t)
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	for i := range 3 * maxSessions {
		b.d.session(fmt.Sprint(i))
	}
	if n := len(b.d.sessions); n > maxSessions {
		t.Errorf("%d sessions", n)
	}
}

// TestOperationTimeDoesNotWait gets the operation time while the data is locked.
func TestOperationTimeDoesNotWait(t *testing.T) {
	b := replicaSet(t)
	b.d.clock.next(func(bson.Timestamp) bson.Timestamp { return bson.Timestamp{T: 1} }) // a no-op is due
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	got := make(chan bson.Timestamp, 1)
	go func() { got <- b.d.OperationTime() }()
	testkit.Receive(t, "the time", got)
}
