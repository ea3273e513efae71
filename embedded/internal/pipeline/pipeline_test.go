package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/expression"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/fault/faulttest"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func list(t testing.TB, s string) bson.A {
	t.Helper()
	return value.As[bson.A](value.Must(value.Encode(testkit.Extended[bson.D](t, `{"l":`+s+`}`))), "l")
}

// shelf is a host with one other collection.
type shelf struct {
	other []bson.D
	wrote []bson.D
}

func (s *shelf) Read(string) ([]bson.D, error) { return s.other, nil }
func (s *shelf) Source(string, any) ([]bson.D, error) {
	return []bson.D{{{Key: "source", Value: true}}}, nil
}
func (s *shelf) Out(_, _ string, docs []bson.D) error { s.wrote = docs; return nil }
func (s *shelf) Merge(_ Merge, docs []bson.D) error   { s.wrote = docs; return nil }

const shop = `[{"_id":1,"k":"a","n":2,"t":["x","y"]},{"_id":2,"k":"b","n":5},{"_id":3,"k":"a","n":4,"t":[]}]`

func TestPipelines(t *testing.T) {
	testkit.PlayCases(t, "testdata/pipelines.txt", func(t *testing.T, in string) string {
		var docs []bson.D
		for _, d := range list(t, shop) {
			docs = append(docs, d.(bson.D))
		}
		h := &shelf{other: []bson.D{{{Key: "_id", Value: int32(9)}, {Key: "ref", Value: int32(2)}}}}
		p, err := Compile(list(t, in), query.Options{})
		if e, ok := err.(*fault.Error); ok {
			return fmt.Sprint("error ", e.Code, " ", e)
		}
		testkit.Check(t, err)
		got, err := p.Run(h, func() ([]bson.D, error) { return docs, nil })
		if e, ok := err.(*fault.Error); ok {
			return fmt.Sprint("error ", e.Code, " when it runs: ", e)
		}
		testkit.Check(t, err)
		testkit.Equal(t, "the documents themselves", value.Text(value.Array(docs)), value.Text(list(t, shop)))
		if p.Writes != "" {
			testkit.Equal(t, "documents written", len(h.wrote), len(docs))
		}
		return value.Text(value.Array(got))
	})
}

// A stage or an accumulator that names.txt does not list would be unknown, one without a parser would panic.
func TestNames(t *testing.T) {
	stages := slices.Concat(slices.Collect(maps.Keys(parsers)), sources)
	testkit.Equal(t, "stages", slices.Sorted(slices.Values(stages)), faulttest.Implemented("stage"))
	testkit.Equal(t, "accumulators", slices.Sorted(slices.Values(slices.Concat(
		slices.Collect(maps.Keys(accumulators)), slices.Collect(maps.Keys(expression.Accumulators))))), faulttest.Implemented("accumulator"))
}

// What a pipeline does for each document, and an expression for each element, looks at the time limit.
func TestTimeLimit(t *testing.T) {
	over := errors.New("the command is over")
	elements := `{"$map":{"input":"$t","in":{"$filter":{"input":"$t","cond":true}}}}`
	for stage, looks := range map[string]int{
		`{"$match":{"k":"a"}}`: 2, `{"$set":{"x":1}}`: 2, `{"$project":{"k":1}}`: 2, `{"$unset":"k"}`: 2,
		`{"$group":{"_id":"$k","n":{"$sum":"$n"}}}`: 2, `{"$unwind":"$t"}`: 2, `{"$replaceWith":"$$ROOT"}`: 2,
		`{"$lookup":{"from":"x","localField":"n","foreignField":"ref","as":"l"}}`: 2,
		`{"$bucket":{"groupBy":"$n","boundaries":[0,9]}}`:                         2, `{"$sortByCount":"$k"}`: 2,
		`{"$facet":{"a":[],"b":[]}}`: 2, `{"$facet":{"a":[{"$set":{"x":1}}]}}`: 4, `{"$unionWith":"x"}`: 1,
		`{"$sample":{"size":1}}`: 1, `{"$redact":{"$literal":"descend"}}`: 2,
		`{"$group":{"_id":null,"m":{"$mergeObjects":"$$ROOT"}}}`:            5,
		`{"$match":{"$expr":` + elements + `}}`:                             5,
		`{"$set":{"l":{"$reduce":{"input":"$t","initialValue":0,"in":1}}}}`: 2, `{"$set":{"l":` + elements + `}}`: 5,
		`{"$set":{"l":{"$let":{"vars":{"x":1},"in":1}}}}`: 5, `{"$set":{"l":{"$range":[0,10]}}}`: 5,
		`{"$set":{"l":{"$zip":{"inputs":[[1,2],[3,4]]}}}}`: 5, `{"$set":{"l":{"$indexOfArray":[[1,2],2]}}}`: 5,
		`{"$set":{"l":{"$setUnion":[[1],[2]]}}}`: 5, `{"$set":{"l":{"$setDifference":[[1,2],[3]]}}}`: 10,
		`{"$set":{"l":{"$arrayToObject":[[["a",1],["b",2]]]}}}`: 5, `{"$set":{"l":{"$objectToArray":"$$ROOT"}}}`: 5,
		`{"$set":{"l":{"$mergeObjects":"$$ROOT"}}}`:                   5,
		`{"$set":{"l":{"$regexFindAll":{"input":"aa","regex":"a"}}}}`: 5,
	} {
		n := 0
		o := query.Options{Options: expression.Options{Stopped: func() error {
			if n++; n >= looks {
				return over
			}
			return nil
		}}}
		p, err := Compile(list(t, `[`+stage+`]`), o)
		testkit.Check(t, err)
		var docs []bson.D
		for _, d := range list(t, shop) {
			docs = append(docs, d.(bson.D))
		}
		_, err = p.Run(&shelf{other: docs}, func() ([]bson.D, error) { return docs, nil })
		if !errors.Is(err, over) || n != looks {
			t.Errorf("%s: %v after %d looks, not %d", stage, err, n, looks)
		}
	}
}
