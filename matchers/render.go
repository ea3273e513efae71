package matchers

import (
	"bytes"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
)

// nothing renders a missing value.
const nothing = "(nothing)"

// both renders two values, in canonical Extended JSON if their relaxed forms are equal.
func both(want *source.Value, actual bson.RawValue) (wanted, got string) {
	scalar, isScalar, _ := want.Scalar()
	wanted, got = want.JSON(), ExtendedJSON(actual, false)
	if isScalar {
		wanted = ExtendedJSON(scalar, false)
	}
	if wanted == got && isScalar {
		wanted, got = ExtendedJSON(scalar, true), ExtendedJSON(actual, true)
	}
	return abridge(wanted), abridge(got)
}

// ExtendedJSON renders a value as Extended JSON, and a missing value as "(nothing)".
func ExtendedJSON(v bson.RawValue, canonical bool) string {
	if v.Type == 0 {
		return nothing
	}
	data, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, canonical, false)
	if err != nil {
		return fmt.Sprintf("(%v: %s)", err, v.Type)
	}
	return string(bytes.TrimSuffix(bytes.TrimPrefix(data, []byte(`{"v":`)), []byte("}")))
}

// abridge truncates a rendered value to 2000 bytes at a character boundary.
func abridge(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%s)", strings.ToValidUTF8(s[:most], ""), plural.Of(len(s), "byte"))
}
