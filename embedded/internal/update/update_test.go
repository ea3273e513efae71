package update

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/fault/faulttest"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

const file = "testdata/updates.txt"

// example is a case: the update Do of the document Of, which an upsert may insert, and which matches Match.
type example struct {
	Of, Match bson.D
	Do        any
	Filters   bson.A
	Insert    bool
}

func read(t testing.TB, in string) (c example) {
	t.Helper()
	testkit.Check(t, bson.Unmarshal(testkit.Extended[bson.Raw](t, in), &c))
	return c
}

func (c example) apply() (bson.D, error) {
	up, err := Compile(c.Do, Options{ArrayFilters: c.Filters})
	if err != nil {
		return nil, err
	}
	match, err := query.Compile(c.Match, query.Options{})
	if err != nil {
		return nil, err
	}
	out, _, err := up.Apply(c.Of, c.Insert, match)
	return out, err
}

func TestUpdates(t *testing.T) {
	testkit.PlayCases(t, file, func(t *testing.T, in string) string {
		c := read(t, in)
		before := value.Text(c.Of)
		got, err := c.apply()
		testkit.Equal(t, "the document itself", value.Text(c.Of), before)
		if e, ok := err.(*fault.Error); ok {
			return fmt.Sprint("error ", e.Code, " ", e)
		}
		testkit.Check(t, err)
		return value.Text(got)
	})
}

func FuzzUpdate(f *testing.F) {
	for _, row := range testkit.Cases(f, file) {
		c := read(f, row.In)
		do, _ := c.Do.(bson.D)
		f.Add([]byte(value.Encode(c.Of)), []byte(value.Encode(do)))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		of, err1 := value.Decode(a)
		do, err2 := value.Decode(b)
		if err1 != nil || err2 != nil {
			return
		}
		before := value.Text(of)
		_, _ = example{Of: of, Do: do, Insert: true}.apply()
		testkit.Equal(t, value.Text(do)+" changed the document itself", value.Text(of), before)
	})
}

// names.txt lists the operators for the documentation.
func TestNames(t *testing.T) {
	testkit.Equal(t, "operators", slices.Sorted(maps.Keys(operators)), faulttest.Implemented("update"))
}
