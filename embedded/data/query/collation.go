package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Collation determines how strings are compared. The embedded deployment supports case sensitivity (strength and
// caseLevel) but no locale's alphabet.
type Collation struct{ caseless bool }

// ParseCollation parses a collation document, which may be empty.
func ParseCollation(d bson.D) (c Collation, err error) {
	if len(d) == 0 {
		return c, nil
	}
	locale, ok := value.Field(d, "locale")
	if !ok {
		return c, command.Errorf(command.CodeIDLFailedToParse, "BSON field 'collation.locale' is missing but a required field")
	}
	s, ok := locale.(string)
	if !ok {
		return c, command.Errorf(command.CodeTypeMismatch, "BSON field 'collation.locale' is the wrong type '%s', expected type 'string'", value.TypeName(locale))
	}
	strength := int64(3)
	if v, ok := value.Field(d, "strength"); ok {
		n, whole := value.Whole(v)
		if !whole || n < 1 || n > 5 {
			return c, command.Errorf(command.CodeValueTooSmall, "BSON field 'strength' value must be >= 1 and <= 5, actual value '%s'", value.Text(v))
		}
		strength = n
	}
	level := value.Get(d, "caseLevel")
	return Collation{caseless: s != "simple" && strength < 3 && !value.Truthy(level)}, nil
}

// Compare orders two values under the collation.
func (c Collation) Compare(a, b any) int { return value.Compare(c.Fold(a), c.Fold(b)) }

// Fold returns a value in a form in which values that the collation considers equal are equal: if case does
// not matter, strings are in lower case.
func (c Collation) Fold(v any) any {
	if !c.caseless {
		return v
	}
	switch x := v.(type) {
	case string:
		return strings.ToLower(x)
	case bson.Symbol:
		return strings.ToLower(string(x))
	case bson.D:
		out := make(bson.D, len(x))
		for i, e := range x {
			out[i] = bson.E{Key: e.Key, Value: c.Fold(e.Value)}
		}
		return out
	case bson.A:
		out := make(bson.A, len(x))
		for i := range x {
			out[i] = c.Fold(x[i])
		}
		return out
	}
	return v
}
