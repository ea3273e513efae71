package source

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Extended JSON as BSON, printed by the driver, and the positions of errors.
func TestBSON(t *testing.T) {
	testkit.PlayCases(t, "testdata/extended.txt", func(t *testing.T, in string) string {
		v, err := ParseJSON("f", []byte(in))
		testkit.Check(t, err)
		value, err := v.BSON()
		var e *Error
		if errors.As(err, &e) {
			return "malformed at " + strings.TrimPrefix(err.Error(), "f:")
		}
		if err != nil || value.Validate() != nil || v.Kind == Document &&
			v.ExtendedScalar() == (value.Type == bson.TypeEmbeddedDocument) {
			t.Errorf("%v, %v, ExtendedScalar is %v", err, value.Validate(), v.ExtendedScalar())
		}
		return value.String()
	})
}

func TestRaw(t *testing.T) {
	var absent *Value
	raw, noRaw := absent.Raw()
	if value, err := absent.BSON(); raw != nil || value.Value != nil || noRaw != nil || err != nil ||
		absent.JSON() != "null" {
		t.Errorf("a nil value returns %v, %v, %v, %v, %v", raw, noRaw, value, err, absent.JSON())
	}
	v, _ := ParseYAML("f", []byte("{a: {b: 1}, c: 11}"))
	testkit.Equal(t, "as JSON", v.JSON(), `{"a":{"b":1},"c":11}`)
	if raw, err := v.Raw(); err != nil || raw.Lookup("a", "b").Int32() != 1 {
		t.Errorf("%v, %v", raw, err)
	}
	if _, err := v.Get("c").Raw(); err == nil {
		t.Error("an integer is accepted as a document")
	}
}

func TestJSON(t *testing.T) {
	v, _ := ParseYAML("f", []byte("{a: [1, 1.0, 'x<', true, null], b: {c: 1e300}}"))
	testkit.Equal(t, "one line", v.JSON(), `{"a":[1,1.0,"x<",true,null],"b":{"c":1e+300}}`)
}
