package commands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A sort, an index, $lte, $min, distinct and $group have one order, with and without a collation.
func TestOneOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, collation := range []bson.D{nil, {{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(2)}}} {
		c, err := value.ParseCollation(collation)
		testkit.Check(t, err)
		b := newBench(t, Options{})
		run := func(command ...bson.E) bson.D {
			t.Helper()
			if collation != nil && command[0].Key != "insert" && command[0].Key != "createIndexes" {
				command = append(command, bson.E{Key: "collation", Value: collation})
			}
			reply, err := b.run(command)
			testkit.Check(t, err)
			return reply
		}
		var docs bson.A
		var values []any
		for i := range 60 {
			v := randomValue(r, 2)
			if _, isArray := v.(bson.A); isArray {
				v = bson.D{{Key: "a", Value: v}} // an array stands for its elements
			}
			values = append(values, v)
			docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: v}})
		}
		index := value.AddIf(bson.D{{Key: "key", Value: bson.D{{Key: "v", Value: int32(1)}}}, {Key: "name", Value: "v"}},
			collation != nil, "collation", collation)
		run(bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: docs})
		run(bson.E{Key: "createIndexes", Value: "c"}, bson.E{Key: "indexes", Value: bson.A{index}})
		slices.SortStableFunc(values, c.Compare)
		find := bson.E{Key: "find", Value: "c"}
		for name, field := range map[string]bson.E{"sort": {Key: "sort", Value: index[0].Value}, "index": {Key: "hint", Value: "v"}} {
			for i, raw := range batchOf(run(find, field)) {
				if got := value.Get(value.Must(raw), "v"); c.Compare(got, values[i]) != 0 {
					t.Fatalf("%s: place %d: got %s, want %s", name, i, value.Text(got), value.Text(values[i]))
				}
			}
		}
		same := slices.CompactFunc(slices.Clone(values), func(x, y any) bool { return c.Compare(x, y) == 0 })
		testkit.Equal(t, "distinct", len(value.As[bson.A](run(bson.E{Key: "distinct", Value: "c"},
			bson.E{Key: "key", Value: "v"}), "values")), len(same))
		cursor := bson.E{Key: "cursor", Value: bson.D{}}
		group := func(fields ...bson.E) []bson.Raw {
			stage := bson.D{{Key: "$group", Value: bson.D(fields)}}
			return batchOf(run(bson.E{Key: "aggregate", Value: "c"}, bson.E{Key: "pipeline", Value: bson.A{stage}}, cursor))
		}
		testkit.Equal(t, "$group", len(group(bson.E{Key: "_id", Value: "$v"})), len(same))
		extremes := value.Must(group(bson.E{Key: "_id"}, bson.E{Key: "least", Value: bson.D{{Key: "$min", Value: "$v"}}},
			bson.E{Key: "most", Value: bson.D{{Key: "$max", Value: "$v"}}})[0])
		filled := slices.DeleteFunc(slices.Clone(values), value.IsNull) // $min and $max ignore null
		if c.Compare(extremes[1].Value, filled[0]) != 0 || c.Compare(extremes[2].Value, filled[len(filled)-1]) != 0 {
			t.Errorf("$min and $max: %s, want %s and %s", value.Text(extremes), value.Text(filled[0]),
				value.Text(filled[len(filled)-1]))
		}
		for _, x := range same {
			want := 0
			for _, v := range values {
				if value.Rank(v) == value.Rank(x) && c.Compare(v, x) <= 0 {
					want++
				}
			}
			filter := bson.D{{Key: "v", Value: bson.D{{Key: "$lte", Value: x}}}}
			testkit.Equal(t, fmt.Sprint("$lte ", value.Text(x)), len(batchOf(run(find, bson.E{Key: "filter", Value: filter}))), want)
		}
	}
}

// randomValue returns a value with documents and arrays up to a depth.
func randomValue(r *rand.Rand, depth int) any {
	plain := []any{nil, int32(0), int32(1), int64(1), 1.0, 1.5, "", "a", "A", "á", "b", bson.Symbol("a"), true, false,
		bson.DateTime(0), bson.Timestamp{T: 1}, bson.ObjectID{1}, bson.Binary{Data: []byte{1}}, bson.JavaScript("x")}
	switch r.IntN(4) {
	case 0:
		d := bson.D{}
		for _, key := range []string{"a", "b", "c"}[:r.IntN(3)] {
			if depth > 0 {
				d = append(d, bson.E{Key: key, Value: randomValue(r, depth-1)})
			}
		}
		return d
	case 1:
		a := bson.A{}
		for range r.IntN(3) {
			if depth > 0 {
				a = append(a, randomValue(r, depth-1))
			}
		}
		return a
	}
	return plain[r.IntN(len(plain))]
}
