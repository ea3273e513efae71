package commands

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

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
		{"a string that a script doubles",
			where(`[` + strings.Repeat("1,", 60) + `1].forEach(x => { s = s + s; }); return true;`), 139},
		{"a field that every stage of an update doubles",
			`{"update":"c","updates":[{"q":{},"u":[` + strings.TrimSuffix(doubled, ",") + `]}]}`, 10334},
	} {
		t.Run(row.reason, func(t *testing.T) {
			b := replicaSet(t)
			wide := strings.Repeat(`"f":1,`, 1<<12)
			// close to the limits
			b.must(`{"insert":"c","documents":[{"_id":1,"a":"` + strings.Repeat("x", 1<<16) + `","wide":{` + wide + `"a":1}}]}`)
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
