package value

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func decimal128(t testing.TB, s string) bson.Decimal128 {
	t.Helper()
	d, err := bson.ParseDecimal128(s)
	testkit.Check(t, err)
	return d
}

func numbers(t testing.TB) []any {
	return []any{
		int32(0), int32(1), int32(-1), int64(1), int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1), 1.0,
		1.5, -0.5, 0.1,
		float64(1 << 53), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e300, decimal128(t, "1"), decimal128(t, "1.50"),
		decimal128(t, "0.1"), decimal128(t, "9223372036854775807"), decimal128(t, "1E+400"), decimal128(t, "-1E-400"),
		decimal128(t, "0E+3"),
	}
}

// TestNumbers checks Compare and Key against exact fractions.
func TestNumbers(t *testing.T) {
	for _, a := range numbers(t) {
		for _, b := range numbers(t) {
			want := rational(a).Cmp(rational(b))
			if got := Compare(a, b); got != want {
				t.Errorf("Compare(%s, %s) = %d, want %d", Text(a), Text(b), got, want)
			}
			if (Key(a) == Key(b)) != (want == 0) {
				t.Errorf("keys of %T %s and %T %s disagree with equality %v", a, Text(a), b, Text(b), want == 0)
			}
		}
	}
}

func TestOrderOfTypes(t *testing.T) {
	// Each value sorts before the next, as in the MongoDB manual.
	list := []any{bson.MinKey{}, Missing{}, nil, math.NaN(), int32(1), "a", bson.D{}, bson.A{}, bson.Binary{},
		bson.Binary{Data: []byte{2}}, bson.Binary{Data: []byte{1, 1}}, bson.Binary{Subtype: 1,
			Data: []byte{0, 0}}, bson.ObjectID{}, false, true,
		bson.DateTime(0), bson.Timestamp{}, bson.Timestamp{I: 1}, bson.Timestamp{T: 1}, bson.Regex{}, bson.MaxKey{}}
	for i := range list {
		for j := range list {
			got, want := Compare(list[i], list[j]), 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got != want {
				t.Errorf("Compare(%s, %s) = %d, want %d", Text(list[i]), Text(list[j]), got, want)
			}
		}
	}
}

func TestArithmeticKeepsTypes(t *testing.T) {
	for _, row := range []struct {
		reason  string
		a, b    any
		want    any
		ok      bool
		compute func(a, b any) (any, bool)
	}{
		{"int32 sum", int32(1), int32(2), int32(3), true, Add},
		{"int32 overflow becomes int64", int32(math.MaxInt32), int32(1), int64(math.MaxInt32 + 1), true, Add},
		{"int64 sum", int64(1), int32(2), int64(3), true, Add},
		{"int64 overflow is reported", int64(math.MaxInt64), int32(1), 9.223372036854775808e18, false, Add},
		{"int32 and double give a double", int32(1), 0.5, 1.5, true, Add},
		{"int64 overflow of a product is reported", int64(math.MaxInt64), int32(2), 1.8446744073709552e19, false, Multiply},
		{"minimum int64 times -1", int64(math.MinInt64), int32(-1), 9.223372036854775808e18, false, Multiply},
	} {
		got, ok := row.compute(row.a, row.b)
		if got != row.want || ok != row.ok {
			t.Errorf("%s: got %T %v %v", row.reason, got, got, ok)
		}
	}
	if got, ok := Add(decimal128(t, "1"), int32(1)); got != nil || ok {
		t.Errorf("Decimal128: got %v", got)
	}
}

// Messages contain the first 150 bytes of a long string, even if a character does not end there.
func TestTextOfLongStrings(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("x", 159): `"` + strings.Repeat("x", 159) + `"`,
		strings.Repeat("x", 160): `"` + strings.Repeat("x", 150) + `..."`,
		strings.Repeat("🤪", 40):  `"` + strings.Repeat("🤪", 37) + "\xf0\x9f..." + `"`,
	} {
		if got := Text(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzDecode checks that decoded documents survive a round trip.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(testkit.Extended[bson.Raw](f, testkit.EveryType)))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(Encode(d))
		if err != nil || Text(again) != Text(d) {
			t.Errorf("%x: %v, %s, %s", data, err, Text(d), Text(again))
		}
		if Key(d) != Key(again) {
			t.Errorf("%x: keys differ", data)
		}
	})
}

// TestDecodeEveryType checks that a value of each type survives a round trip.
func TestDecodeEveryType(t *testing.T) {
	all := testkit.Extended[bson.Raw](t, testkit.EveryType)
	d, err := Decode(all)
	if err != nil || !bytes.Equal(Encode(d), all) || len(d) != 20 {
		t.Errorf("%s, %v", Text(d), err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := Encode(bson.D{{Key: "a", Value: int32(1)}})
	for reason, data := range map[string][]byte{
		"no data":                  nil,
		"a length beyond the data": {9, 0, 0, 0, 0},
		"no terminator":            bytes.Replace(good, []byte{0}, []byte{1}, -1),
		"a nested length beyond the data": bytes.Replace(Encode(bson.D{{Key: "a", Value: bson.D{}}}), []byte{5, 0, 0, 0, 0},
			[]byte{9, 0, 0, 0, 0}, 1),
		"truncated": good[:len(good)-2],
	} {
		if _, err := Decode(data); err == nil {
			t.Errorf("%s: decoded", reason)
		}
	}
}
