package enginekit

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// value gives a value as it stands in a document.
func value(t *testing.T, v any) bson.RawValue {
	t.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	testkit.Check(t, err)
	return bson.Raw(doc).Lookup("v")
}

func TestInteger(t *testing.T) {
	for _, row := range []struct {
		value any
		want  int64
	}{{int32(-7), -7}, {int64(math.MaxInt64), math.MaxInt64}, {3.0, 3}, {float64(1 << 53), 1 << 53}} { // the greatest that is surely whole
		got, ok := Integer(value(t, row.value))
		testkit.Equal(t, "a whole number", []any{got, ok}, []any{row.want, true})
	}
	for _, v := range []bson.RawValue{{}, value(t, float64(1<<53)*2), value(t, 1.5), value(t, math.NaN()), value(t, math.Inf(-1)), value(t, "1"), value(t, nil)} {
		got, ok := Integer(v)
		testkit.Equal(t, "not a whole number: "+v.String(), []any{got, ok}, []any{0, false})
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
	_, err := ValueOf(make(chan int))
	testkit.Fails(t, err)
}

func TestSameOption(t *testing.T) {
	for names, want := range map[[2]string]bool{
		{"w", "w"}:                   true,
		{"retryReads", "RETRYreads"}: true,
		{"SSL", "tls"}:               true,
		{"tls", "tlsCAFile"}:         false,
	} {
		testkit.Equal(t, names[0]+" and "+names[1], SameOption(names[0], names[1]), want)
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
		testkit.Equal(t, row.reason, []any{got, err != nil, len(got)}, []any{row.want, row.want == nil, len(row.want)})
	}
}
