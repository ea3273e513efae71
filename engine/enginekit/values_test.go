package enginekit

import (
	"math"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// value gives a value as it stands in a document.
func value(t *testing.T, v any) bson.RawValue {
	t.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		t.Fatal(err)
	}
	return bson.Raw(doc).Lookup("v")
}

func TestInteger(t *testing.T) {
	for _, row := range []struct {
		reason string
		value  any
		want   int64
		ok     bool
	}{
		{"32 bits", int32(-7), -7, true},
		{"64 bits", int64(math.MaxInt64), math.MaxInt64, true},
		{"a whole double", 3.0, 3, true},
		{"the greatest double that is surely whole", float64(1 << 53), 1 << 53, true},
		{"a greater one", float64(1<<53) * 2, 0, false},
		{"a fraction", 1.5, 0, false},
		{"no number", math.NaN(), 0, false},
		{"without end", math.Inf(-1), 0, false},
		{"a text", "1", 0, false},
		{"null", nil, 0, false},
	} {
		if got, ok := Integer(value(t, row.value)); got != row.want || ok != row.ok {
			t.Errorf("%s: got %d, %t, want %d, %t", row.reason, got, ok, row.want, row.ok)
		}
	}
	if _, ok := Integer(bson.RawValue{}); ok {
		t.Error("a value that is not there is a number")
	}
}

func TestValueOf(t *testing.T) {
	doc := bson.Raw(value(t, bson.D{{Key: "a", Value: int32(1)}}).Value)
	for _, row := range []struct {
		reason string
		value  any
		want   bson.RawValue
	}{
		{"no value", Nothing{}, bson.RawValue{}},
		{"null", nil, value(t, nil)},
		{"no document", bson.Raw(nil), value(t, nil)},
		{"a document", doc, value(t, doc)},
		{"documents", []bson.Raw{doc, doc}, value(t, bson.A{doc, doc})},
		{"no documents", []bson.Raw{}, value(t, bson.A{})},
		{"an array", bson.RawArray(value(t, bson.A{int32(1)}).Value), value(t, bson.A{int32(1)})},
		{"a value that is one already", value(t, "x"), value(t, "x")},
		{"a number", int64(3), value(t, int64(3))},
		{"what the driver knows to write", bson.D{{Key: "a", Value: int32(1)}}, value(t, doc)},
	} {
		if got, err := ValueOf(row.value); err != nil || !got.Equal(row.want) {
			t.Errorf("%s: got %v, %v, want %v", row.reason, got, err, row.want)
		}
	}
	if got, err := ValueOf(make(chan int)); err == nil {
		t.Errorf("what is no BSON: got %v", got)
	}
}

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
