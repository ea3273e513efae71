package matchers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A find's result: root-level documents. The named peer is cmp.Equal on the
// decoded documents, which knows nothing of flexible numerics.
func benchmarkInput(b *testing.B, n int) (expected, actual string) {
	var e, a []string
	for i := range n {
		doc := fmt.Sprintf(`{"_id":%d,"name":"document %d","tags":["a","b","c"],"sub":{"x":%d.5,"y":{"z":null,"w":true}}}`, i, i, i)
		e, a = append(e, doc), append(a, doc)
	}
	return "[" + strings.Join(e, ",") + "]", "[" + strings.Join(a, ",") + "]"
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		expected, actual := benchmarkInput(b, n)
		v, rv := yaml(b, expected), seen(b, actual)
		b.Run(fmt.Sprintf("utr/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(rv.Value)))
			for b.Loop() {
				if got := New(nil).Value("", v, rv, RootDocuments); len(got) > 0 {
					b.Fatal(show(got))
				}
			}
		})
		var want bson.A
		if err := bson.UnmarshalValue(rv.Type, rv.Value, &want); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("go-cmp/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(rv.Value)))
			for b.Loop() {
				var got bson.A
				if err := bson.UnmarshalValue(rv.Type, rv.Value, &got); err != nil || !cmp.Equal(want, got) {
					b.Fatal("not equal")
				}
			}
		})
	}
}
