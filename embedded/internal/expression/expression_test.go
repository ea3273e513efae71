package expression

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/fault/faulttest"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func ext(t testing.TB, s string) any {
	t.Helper()
	return value.Get(value.Must(value.Encode(testkit.Extended[bson.D](t, `{"v":`+s+`}`))), "v")
}

const (
	file = "testdata/expressions.txt"
	root = `{"a":2,"b":{"c":"x"},"l":[1,2,3],"o":[{"k":1},{"k":2}],"s":"Hello","z":0}`
)

func evaluate(v any, doc any) (any, error) {
	vars := bson.D{{Key: "v", Value: int32(7)}}
	x, err := Parse(v, Options{Let: vars})
	if err != nil {
		return nil, err
	}
	return x.Eval(NewEnv(doc, vars))
}

func TestExpressions(t *testing.T) {
	testkit.PlayCases(t, file, func(t *testing.T, in string) string {
		got, err := evaluate(ext(t, in), ext(t, root))
		if e, ok := err.(*fault.Error); ok {
			return fmt.Sprint("error ", e.Code, " ", e)
		}
		testkit.Check(t, err)
		return value.Text(got)
	})
}

func FuzzExpression(f *testing.F) {
	doc := ext(f, root)
	for _, c := range testkit.Cases(f, file) {
		f.Add([]byte(value.Encode(bson.D{{Key: "v", Value: ext(f, c.In)}})))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := value.Decode(data)
		if err != nil || len(d) == 0 {
			return
		}
		_, _ = evaluate(d[0].Value, doc)
	})
}

// An operator that names.txt does not list would be unknown.
func TestNames(t *testing.T) {
	names := slices.Compact(slices.Sorted(slices.Values(
		slices.Concat(slices.Collect(maps.Keys(operators)), slices.Collect(maps.Keys(special))))))
	testkit.Equal(t, "operators", names, faulttest.Implemented("expression"))
}
