package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Accumulator adds a value to what the values of a group before it have made.
type Accumulator struct {
	Start any
	Add   func(sum, v any) (any, error)
}

var accumulators = map[string]Accumulator{
	"$sum": {int32(0), func(sum, v any) (any, error) {
		if !value.IsNumber(v) {
			return sum, nil
		}
		if sum, _ = value.Add(sum, v); sum == nil {
			return nil, command.Errorf(command.CodeNotImplemented, "$sum of Decimal128 is not implemented by the embedded deployment")
		}
		return sum, nil
	}},
	"$push": {bson.A(nil), func(list, v any) (any, error) {
		if (v != value.Missing{}) {
			list = append(list.(bson.A), v)
		}
		return list, nil
	}},
}

// NewAccumulator is the accumulator of a name such as $sum. The error has the
// server's code for an unknown name.
func NewAccumulator(name string) (Accumulator, error) {
	a, ok := accumulators[name]
	if !ok {
		return a, command.Errorf(15952, "unknown group operator '%s'", name)
	}
	return a, nil
}
