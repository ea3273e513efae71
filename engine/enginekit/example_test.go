package enginekit_test

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
)

// The options of a collection are read field by field. A field that the engine does not know is an error, so that no
// test passes or fails for another reason.
func ExampleFields() {
	var level string
	var size int64
	fields := enginekit.Fields{
		"level": enginekit.Set(&level, bson.RawValue.StringValueOK),
		"size":  enginekit.Set(&size, enginekit.Integer),
	}
	unknown := func(field string) error { return fmt.Errorf("%s is not supported", field) }
	for _, options := range []bson.D{
		{{Key: "level", Value: "majority"}, {Key: "size", Value: 10}},
		{{Key: "level", Value: 1}},
		{{Key: "color", Value: "red"}},
	} {
		kind, value, _ := bson.MarshalValue(options)
		err := fields.Read("options", bson.RawValue{Type: kind, Value: value}, unknown)
		fmt.Println(level, size, err)
	}
	// Output:
	// majority 10 <nil>
	// majority 10 options.level: invalid type or value
	// majority 10 options.color is not supported
}
