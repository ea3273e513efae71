package commands

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestExplain explains commands on a collection of three documents. The output is the stages of the plan, the outermost
// first, with the bounds of an index, and the numbers of documents that it returns, and of keys and documents that it examines.
func TestExplain(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/explain.txt", func(t *testing.T, in string) string {
		b := replicaSet(t)
		b.must(`{"insert": "c", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 2}]}`)
		b.must(`{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}`)
		before := docsOf(b.must(`{"find": "c"}`))
		r, err := b.do(in)
		testkit.Equal(t, "the documents", docsOf(b.must(`{"find": "c"}`)), before)
		if code := codeOf(r, err); code != 0 {
			return fmt.Sprint("error ", code, " ", messageOf(r, err))
		}
		explained := r
		stages := value.As[bson.A](r, "stages")
		if len(stages) > 0 {
			explained = value.As[bson.D](stages[0].(bson.D), "$cursor")
		}
		out := ""
		plan := value.As[bson.D](value.As[bson.D](explained, "queryPlanner"), "winningPlan")
		for ; plan != nil; plan = value.As[bson.D](plan, "inputStage") {
			out += value.As[string](plan, "stage") + " "
			if bounds := value.Get(plan, "indexBounds"); bounds != nil {
				out += value.Text(bounds) + " "
			}
		}
		if stats := value.As[bson.D](r, "executionStats"); stats != nil {
			out += fmt.Sprint(value.Get(stats, "nReturned"), value.Get(stats, "totalKeysExamined"),
				value.Get(stats, "totalDocsExamined"), " ")
		}
		return out + value.Text(append(bson.A{value.Get(value.As[bson.D](explained, "queryPlanner"), "parsedQuery")},
			stages[min(1, len(stages)):]...))
	})
}
