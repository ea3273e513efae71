package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// InSlots returns the options of a find. That of 5.0.0 runs in the slot-based engine if no path has a number. There,
// the fields of documents are compared by name before type, except for a sort on several fields of a document.
func (o Options) InSlots(filter, order bson.D) Options {
	o.Collation = o.Collation.ByName(version.Of(o.Wire).SlotEngine && !numbered(filter) && !numbered(order))
	return o
}

// numbered reports whether a path in a filter or an order has a number.
func numbered(spec bson.D) bool {
	return slices.ContainsFunc(spec, func(e bson.E) bool {
		inner, _ := e.Value.(bson.D)
		list, _ := e.Value.(bson.A)
		switch {
		case slices.Contains([]string{"$and", "$or", "$nor", "$all"}, e.Key):
			return slices.ContainsFunc(list, func(v any) bool { d, _ := v.(bson.D); return numbered(d) })
		case e.Key == "$elemMatch" || e.Key == "$not":
			return numbered(inner)
		case strings.HasPrefix(e.Key, "$"):
			return false
		}
		return slices.ContainsFunc(strings.Split(e.Key, "."), func(part string) bool {
			_, ok := value.Position(part)
			return ok
		}) || IsOperators(inner) && numbered(inner)
	})
}
