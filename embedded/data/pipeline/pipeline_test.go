package pipeline

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func list(t testing.TB, s string) bson.A {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(`{"l":`+s+`}`), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	v, _ := value.Field(value.Must(value.Encode(d)), "l")
	return v.(bson.A)
}

// shelf is a host with one other collection.
type shelf struct {
	other []bson.D
	wrote []bson.D
}

func (s *shelf) Read(context.Context, string, string) ([]bson.D, error) { return s.other, nil }
func (s *shelf) Source(context.Context, string, any) ([]bson.D, error) {
	return []bson.D{{{Key: "source", Value: true}}}, nil
}
func (s *shelf) Out(_ context.Context, _, _ string, docs []bson.D) error { s.wrote = docs; return nil }
func (s *shelf) Merge(_ context.Context, _ *Merge, docs []bson.D) error  { s.wrote = docs; return nil }

const shop = `[{"_id":1,"k":"a","n":2,"t":["x","y"]},{"_id":2,"k":"b","n":5},{"_id":3,"k":"a","n":4,"t":[]}]`

var pipelines = []struct{ reason, stages, want string }{
	{"$match", `[{"$match":{"n":{"$gt":3}}},{"$project":{"_id":1}}]`, `[{"_id":2},{"_id":3}]`},
	{"$sort, $skip and $limit", `[{"$sort":{"n":-1}},{"$skip":1},{"$limit":1},{"$project":{"n":1,"_id":0}}]`, `[{"n":4}]`},
	{"$group with $sum and $avg", `[{"$group":{"_id":"$k","s":{"$sum":"$n"},"m":{"$avg":"$n"}}}]`, `[{"_id":"a","s":6,"m":3.0},{"_id":"b","s":5,"m":5.0}]`},
	{"$group with the others", `[{"$group":{"_id":null,"f":{"$first":"$n"},"l":{"$last":"$n"},"p":{"$push":"$k"},"min":{"$min":"$n"},"max":{"$max":"$n"}}}]`,
		`[{"_id":null,"f":2,"l":4,"p":["a","b","a"],"min":2,"max":5}]`},
	{"$count", `[{"$count":"n"}]`, `[{"n":3}]`},
	{"$count of nothing is nothing", `[{"$match":{"x":1}},{"$count":"n"}]`, `[]`},
	{"$unwind drops empty arrays", `[{"$unwind":"$t"},{"$project":{"t":1,"_id":0}}]`, `[{"t":"x"},{"t":"y"}]`},
	{"$unwind may keep them", `[{"$unwind":{"path":"$t","preserveNullAndEmptyArrays":true}},{"$project":{"t":1}}]`, `[{"_id":1,"t":"x"},{"_id":1,"t":"y"},{"_id":2},{"_id":3}]`},
	{"$addFields and $unset", `[{"$limit":1},{"$addFields":{"d.e":{"$multiply":["$n",2]}}},{"$unset":["t","k"]}]`, `[{"_id":1,"n":2,"d":{"e":4}}]`},
	{"$replaceRoot", `[{"$limit":1},{"$replaceRoot":{"newRoot":{"x":"$n"}}}]`, `[{"x":2}]`},
	{"$facet", `[{"$facet":{"a":[{"$count":"n"}],"b":[{"$limit":1},{"$project":{"_id":1}}]}}]`, `[{"a":[{"n":3}],"b":[{"_id":1}]}]`},
	{"$lookup by fields", `[{"$match":{"_id":2}},{"$lookup":{"from":"o","localField":"_id","foreignField":"ref","as":"o"}},{"$project":{"o":1}}]`, `[{"_id":2,"o":[{"_id":9,"ref":2}]}]`},
	{"$lookup by a pipeline", `[{"$match":{"_id":2}},{"$lookup":{"from":"o","let":{"i":"$_id"},"pipeline":[{"$match":{"$expr":{"$eq":["$ref","$$i"]}}}],"as":"o"}},{"$project":{"o._id":1}}]`, `[{"_id":2,"o":[{"_id":9}]}]`},
	{"$unionWith", `[{"$limit":1},{"$project":{"_id":1}},{"$unionWith":"o"}]`, `[{"_id":1},{"_id":9,"ref":2}]`},
	{"$sortByCount", `[{"$sortByCount":"$k"}]`, `[{"_id":"a","count":2},{"_id":"b","count":1}]`},
	{"$bucket", `[{"$bucket":{"groupBy":"$n","boundaries":[0,3,6]}}]`, `[{"_id":0,"count":1},{"_id":3,"count":2}]`},
	{"expressions", `[{"$limit":1},{"$project":{"_id":0,"c":{"$cond":[{"$gt":["$n",1]},"big","small"]},"u":{"$toUpper":"$k"},"s":{"$size":"$t"},"m":{"$map":{"input":"$t","as":"i","in":{"$concat":["$$i","!"]}}}}}]`,
		`[{"c":"big","u":"A","s":2,"m":["x!","y!"]}]`},
	{"a source makes its own documents", `[{"$collStats":{}}]`, `[{"source":true}]`},
	{"$out gives nothing", `[{"$out":"x"}]`, `[]`},
}

func TestPipelines(t *testing.T) {
	for _, row := range pipelines {
		p, err := Compile(list(t, row.stages), Options{DB: "d"})
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		var docs []bson.D
		for _, d := range list(t, shop) {
			docs = append(docs, d.(bson.D))
		}
		before := value.Text(array(docs))
		h := &shelf{other: []bson.D{{{Key: "_id", Value: int32(9)}, {Key: "ref", Value: int32(2)}}}}
		got, err := p.Run(context.Background(), h, func() ([]bson.D, error) { return docs, nil })
		if err != nil || value.Text(array(got)) != value.Text(list(t, row.want)) {
			t.Errorf("%s: got %s, %v, want %s", row.reason, value.Text(array(got)), err, row.want)
		}
		if value.Text(array(docs)) != before {
			t.Errorf("%s: the documents themselves were changed", row.reason)
		}
		if p.Writes != "" && len(h.wrote) != len(docs) {
			t.Errorf("%s: wrote %d documents", row.reason, len(h.wrote))
		}
	}
}

func TestRefusedPipelines(t *testing.T) {
	for _, row := range []struct {
		reason, stages string
		code           int32
	}{
		{"an unknown stage", `[{"$nosuch":{}}]`, 40324},
		{"two stages in one", `[{"$match":{},"$limit":1}]`, 40323},
		{"$out before the end", `[{"$out":"x"},{"$match":{}}]`, 40601},
		{"a source after the start", `[{"$match":{}},{"$collStats":{}}]`, 40602},
		{"a limit of nothing", `[{"$limit":0}]`, 15958},
		{"$unset of a number", `[{"$unset":[1]}]`, 31002},
		{"a group without _id", `[{"$group":{"n":{"$sum":1}}}]`, 15955},
		{"an unknown accumulator", `[{"$group":{"_id":1,"n":{"$nosuch":1}}}]`, 15952},
		{"$out within $facet", `[{"$facet":{"a":[{"$out":"x"}]}}]`, 40600},
	} {
		_, err := Compile(list(t, row.stages), Options{DB: "d"})
		if e, ok := err.(*command.Error); !ok || e.Code != row.code {
			t.Errorf("%s: got %v, want code %d", row.reason, err, row.code)
		}
	}
	if _, err := CompileUpdate(list(t, `[{"$match":{}}]`), Options{}); err == nil {
		t.Error("$match in an update is not refused")
	}
}
