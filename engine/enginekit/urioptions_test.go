package enginekit

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestSameOption(t *testing.T) {
	for _, row := range []struct {
		reason, a, b string
		want         bool
	}{
		{"the same", "w", "w", true},
		{"whatever the case", "retryReads", "RETRYreads", true},
		{"two names of one", "SSL", "tls", true},
		{"another one", "tls", "tlsCAFile", false},
	} {
		if got := SameOption(row.a, row.b); got != row.want {
			t.Errorf("%s: %s and %s: got %t", row.reason, row.a, row.b, got)
		}
	}
}

func TestOptionValues(t *testing.T) {
	for _, row := range []struct {
		reason, name string
		value        any
		want         []string // nil: an error
	}{
		{"a text", "appName", "a&b", []string{"a&b"}},
		{"a boolean", "retryReads", false, []string{"false"}},
		{"a number", "timeoutMS", int32(5), []string{"5"}},
		{"a number with a point", "timeoutMS", 5.0, []string{"5"}},
		{"a fraction", "timeoutMS", 1.5, nil},
		{"an option that stands several times", "readPreferenceTags", bson.A{"dc:ny,rack:1", ""}, []string{"dc:ny,rack:1", ""}},
		{"documents are properties", "readPreferenceTags", bson.A{bson.D{{Key: "dc", Value: "ny"}, {Key: "rack", Value: 1}}, bson.D{}}, []string{"dc:ny,rack:1", ""}},
		{"one list", "COMPRESSORS", bson.A{"zlib", "zstd"}, []string{"zlib,zstd"}},
		{"a list as it is written", "compressors", "zlib,zstd", []string{"zlib,zstd"}},
		{"a fraction in an array", "readPreferenceTags", bson.A{"dc:ny", 1.5}, nil},
		{"a property that is no plain value", "authMechanismProperties", bson.D{{Key: "A", Value: bson.A{1, 2}}}, nil},
		{"null", "appName", nil, nil},
	} {
		got, err := OptionValues(row.name, value(t, row.value))
		if (err != nil) != (row.want == nil) || !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, %v, want %q", row.reason, got, err, row.want)
		}
	}
}
