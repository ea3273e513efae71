package commands

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// within reports whether a partial index has all documents that a filter can match: each condition of the index follows
// from a condition of the filter.
func within(x *store.Index, filter bson.D) bool {
	partial := value.As[bson.D](x.Spec, "partialFilterExpression")
	return partial != nil && !slices.ContainsFunc(partial, func(e bson.E) bool {
		return slices.ContainsFunc(operators(e), func(need bson.E) bool {
			return !slices.ContainsFunc(filter, func(given bson.E) bool {
				return given.Key == e.Key && slices.ContainsFunc(operators(given),
					func(op bson.E) bool { return follows(need, op) })
			})
		})
	})
}

// bounds are the operators that compare, with the sign of what they match and whether they match the bound.
var bounds = map[string]struct {
	sign  int
	equal bool
}{"$gt": {1, false}, "$gte": {1, true}, "$lt": {-1, false}, "$lte": {-1, true}}

// follows reports whether one condition on a field follows from another.
func follows(need, given bson.E) bool {
	outer, isBound := bounds[need.Key]
	inner, compares := bounds[given.Key]
	switch {
	case given.Key == "$eq":
		f, _ := query.Compile(value.Doc("v", bson.D{need}), query.Options{}) // valid: the index exists
		ok, err := f.Matches(value.Doc("v", given.Value))
		return ok && err == nil
	case need.Key == "$exists":
		return compares
	case !isBound || !compares || outer.sign != inner.sign || value.IsNumber(need.Value) != value.IsNumber(given.Value):
		return false
	}
	n := value.Compare(given.Value, need.Value) * outer.sign
	return n > 0 || n == 0 && (outer.equal || !inner.equal)
}
