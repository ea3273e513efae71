package matchers_test

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/matchers"
)

// An expected document is matched against an actual one. Extra fields are allowed at the root, and special operators
// are evaluated; each mismatch has its path, and its place in the file.
func ExampleMatcher_Value() {
	expected, err := source.ParseYAML("find.yml", []byte("_id: { $$type: int }\nscore: 1.5\n"))
	if err != nil {
		panic(err)
	}
	for _, document := range []bson.D{
		{{Key: "_id", Value: 1}, {Key: "score", Value: 1.5}, {Key: "extra", Value: true}},
		{{Key: "_id", Value: "1"}, {Key: "score", Value: 1}},
	} {
		kind, value, err := bson.MarshalValue(document)
		if err != nil {
			panic(err)
		}
		actual := bson.RawValue{Type: kind, Value: value}
		mismatches := matchers.New(nil).Value("expectResult", expected, actual, operations.RootDocument)
		fmt.Println(len(mismatches), "mismatches")
		for _, m := range mismatches {
			fmt.Printf("%s: %s: %s, want %s, got %s\n", m.Position, m.Path, m.Message, m.Want, m.Got)
		}
	}
	// Output:
	// 0 mismatches
	// 2 mismatches
	// find.yml:1:6: expectResult._id: expected type int, got string, want {"$$type":"int"}, got "1"
	// find.yml:2:8: expectResult.score: the numbers differ, want 1.5, got 1
}
