package value

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestCollations(t *testing.T) {
	testkit.PlayCases(t, "testdata/collations.txt", func(t *testing.T, in string) string {
		options, list, _ := strings.Cut(in, " of ")
		c, err := ParseCollation(Must(testkit.Raw(t, testkit.Extended[bson.D](t, options))))
		if e, ok := err.(*fault.Error); ok {
			return fmt.Sprint("error ", e.Code, " ", e)
		}
		testkit.Check(t, err)
		words := strings.Fields(list)
		slices.SortStableFunc(words, func(a, b string) int { return c.Compare(a, b) })
		out := words[0]
		for i, word := range words[1:] {
			if (c.Key(words[i]) == c.Key(word)) != (c.Compare(words[i], word) == 0) {
				t.Errorf("%s, %s: keys disagree with the order", words[i], word)
			}
			if out += " "; c.Compare(words[i], word) == 0 {
				out += "= "
			}
			out += word
		}
		return out
	})
}

// The weights of a long string would need too much memory: its end is compared by its bytes.
func TestLongStrings(t *testing.T) {
	c, err := ParseCollation(bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(1)}})
	testkit.Check(t, err)
	long := strings.Repeat("é", longest/2)
	testkit.Equal(t, "keys of the first megabyte", c.Key(long[2:]) == c.Key(strings.ToUpper(long[2:])), true)
	testkit.Equal(t, "keys of what follows", c.Key("x"+long+"a") == c.Key("x"+long+"A"), false)
}

// Compare is a total order, with each collation, and equal values have equal keys.
func TestTotalOrder(t *testing.T) {
	values := append(numbers(t), bson.MinKey{}, Missing{}, bson.Undefined{}, nil, "", "a", "á", "A", "b", bson.Symbol("a"),
		bson.D{}, bson.D{{Key: "a", Value: int32(1)}}, bson.D{{Key: "a", Value: "x"}}, bson.D{{Key: "b", Value: int32(1)}},
		bson.D{{Key: "a", Value: 1.0}, {Key: "b", Value: nil}}, bson.A{}, bson.A{int64(1)}, bson.A{1.0, "x"}, bson.A{bson.D{}},
		bson.Binary{Data: []byte{1}}, bson.Binary{Subtype: 5, Data: []byte{0}}, bson.ObjectID{1}, false, true, bson.DateTime(1),
		bson.Timestamp{T: 1}, bson.Regex{Pattern: "b"}, bson.Regex{Pattern: "^a", Options: "i"}, bson.Regex{Pattern: "^a"},
		bson.DBPointer{DB: "a"}, bson.DBPointer{DB: "b"}, bson.JavaScript("b"), bson.JavaScript("aa"),
		bson.CodeWithScope{Code: "b", Scope: bson.D{}}, bson.CodeWithScope{Code: "aa", Scope: bson.D{{Key: "a", Value: 1.0}}},
		bson.CodeWithScope{Code: "aa", Scope: bson.D{{Key: "a", Value: int32(1)}}}, bson.MaxKey{})
	english, err := ParseCollation(bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(2)}})
	testkit.Check(t, err)
	for name, c := range map[string]Collation{"none": {}, "english": english, "by name": Collation{}.ByName(true)} {
		for _, x := range values {
			for _, y := range values {
				xy := c.Compare(x, y)
				if c.Compare(y, x) != -xy || (c.Key(x) == c.Key(y)) != (xy == 0) {
					t.Errorf("%s: %s and %s: %d, reversed %d, keys equal: %v", name, Text(x), Text(y), xy, c.Compare(y, x),
						c.Key(x) == c.Key(y))
				}
				for _, z := range values {
					if xy <= 0 && c.Compare(y, z) <= 0 && c.Compare(x, z) > 0 {
						t.Errorf("%s: %s ≤ %s ≤ %s, but the first is greater than the last", name, Text(x), Text(y), Text(z))
					}
				}
			}
		}
	}
}
