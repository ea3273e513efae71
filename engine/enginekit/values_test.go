package enginekit

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// value converts a value to BSON.
func value(t *testing.T, v any) bson.RawValue {
	t.Helper()
	return testkit.Raw(t, testkit.D("v", v)).Lookup("v")
}

// parsed reads a value in Extended JSON. An empty text is the zero RawValue.
func parsed(t *testing.T, text string) bson.RawValue {
	t.Helper()
	if text == "" {
		return bson.RawValue{}
	}
	return testkit.Extended[bson.Raw](t, `{"v": `+text+`}`).Lookup("v")
}

func TestTranscript(t *testing.T) {
	testkit.Commands{
		"integer": func(t *testing.T, a []string) (string, error) {
			n, ok := Integer(parsed(t, a[0]))
			return fmt.Sprint(n, " ", ok), nil
		},
		"same": func(_ *testing.T, a []string) (string, error) { return fmt.Sprint(SameOption(a[0], a[1])), nil },
		"option": func(t *testing.T, a []string) (string, error) {
			got, err := optionValues(a[0], parsed(t, a[1]))
			return fmt.Sprintf("%q", got), err
		},
		"address": func(_ *testing.T, a []string) (string, error) { return fmt.Sprintf("%q", AddressOf(a[0])), nil },
	}.Play(t, "testdata/values.txt")
}

func TestValueOf(t *testing.T) {
	doc := bson.Raw(value(t, bson.D{{Key: "a", Value: int32(1)}}).Value)
	for _, row := range []struct {
		reason string
		value  any
		want   bson.RawValue
	}{
		{"nothing", Nothing{}, bson.RawValue{}},
		{"null", nil, value(t, nil)},
		{"a nil document", bson.Raw(nil), value(t, nil)},
		{"a document", doc, value(t, doc)},
		{"documents", []bson.Raw{doc, doc}, value(t, bson.A{doc, doc})},
		{"an empty array", []bson.Raw{}, value(t, bson.A{})},
		{"an array", bson.RawArray(value(t, bson.A{int32(1)}).Value), value(t, bson.A{int32(1)})},
		{"a BSON value", value(t, "x"), value(t, "x")},
		{"a number", int64(3), value(t, int64(3))},
		{"a value that the driver marshals", bson.D{{Key: "a", Value: int32(1)}}, value(t, doc)},
	} {
		if got, err := ValueOf(row.value); err != nil || !got.Equal(row.want) {
			t.Errorf("%s: got %v, %v, want %v", row.reason, got, err, row.want)
		}
	}
	_, err := ValueOf(make(chan int))
	testkit.ErrorContains(t, err)
}
