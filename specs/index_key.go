package specs

import (
	"fmt"
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// indexKey returns a text that is the same for values that are the same _id to a server: numbers of any type with equal
// values, equal strings and symbols, and documents with equal fields in the same order (Comparison/Sort Order of the
// server's manual).
func indexKey(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return fmt.Sprint("number ", v.AsInt64())
	case bson.TypeDouble:
		if f := v.Double(); !math.IsInf(f, 0) && !math.IsNaN(f) {
			return "number " + new(big.Rat).SetFloat64(f).RatString()
		}
		return fmt.Sprintf("number %v", v.Double())
	case bson.TypeDecimal128:
		d := v.Decimal128()
		digits, exponent, err := d.BigInt()
		switch {
		case d.IsNaN():
			return "number NaN"
		case err != nil:
			return fmt.Sprintf("number %v", math.Inf(d.IsInf()))
		}
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
		if exponent < 0 {
			return "number " + new(big.Rat).SetFrac(digits, power).RatString()
		}
		return "number " + digits.Mul(digits, power).String()
	case bson.TypeString:
		return fmt.Sprintf("string %q", v.StringValue())
	case bson.TypeSymbol:
		return fmt.Sprintf("string %q", v.Symbol())
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		text := v.Type.String()
		elements, _ := bson.Raw(v.Value).Elements()
		for _, e := range elements {
			text += fmt.Sprintf(" %q: (%s)", e.Key(), indexKey(e.Value()))
		}
		return text
	}
	return fmt.Sprint(v.Type, v.Value)
}
