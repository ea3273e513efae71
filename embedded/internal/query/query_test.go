package query

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/fault/faulttest"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

const file = "testdata/filters.txt"

func doc(t testing.TB, s string) bson.D {
	t.Helper()
	return value.Must(value.Encode(testkit.Extended[bson.D](t, s))) // as from the wire: null is nil
}

// parts returns the filter and the document of a case: "filter on document with options".
func parts(t testing.TB, in string) (filter, document bson.D) {
	in, _, _ = strings.Cut(in, " with ")
	a, b, _ := strings.Cut(in, " on ")
	return doc(t, a), doc(t, b)
}

// matched returns whether a filter matches a document, and how long its scripts slept.
func matched(t *testing.T, in string) string {
	_, with, _ := strings.Cut(in, " with ")
	filter, document := parts(t, in)
	var slept time.Duration
	o := Options{Upsert: with == "upsert"}
	switch {
	case strings.Contains(with, "scripts"):
		o.Scripts = &Scripts{Disabled: strings.Contains(with, "without"),
			Sleep: func(d time.Duration) error { slept += d; return nil }}
	case strings.HasPrefix(with, "{"):
		var err error
		o.Collation, err = value.ParseCollation(doc(t, with))
		testkit.Check(t, err)
	}
	f, err := Compile(filter, o)
	if err != nil {
		return refused(t, err)
	}
	ok, err := f.Matches(document)
	if err != nil {
		return refused(t, err)
	}
	out := fmt.Sprint(ok)
	if slept > 0 {
		out += fmt.Sprint(" after ", slept)
	}
	return out
}

func refused(t *testing.T, err error) string {
	t.Helper()
	e, ok := err.(*fault.Error)
	if !ok {
		t.Fatal(err)
	}
	return fmt.Sprint("error ", e.Code, " ", e)
}

func TestFilters(t *testing.T) { testkit.PlayCases(t, file, matched) }

func TestMismatches(t *testing.T) {
	testkit.PlayCases(t, "testdata/mismatches.txt", func(t *testing.T, in string) string {
		filter, document := parts(t, in)
		f, err := Compile(filter, Options{})
		if err != nil {
			return refused(t, err)
		}
		if ok, err := f.Matches(document); ok || err != nil {
			return fmt.Sprint(ok)
		}
		return value.Text(f.Mismatch(document))
	})
}

func TestProjections(t *testing.T) {
	testkit.PlayCases(t, "testdata/projections.txt", func(t *testing.T, in string) string {
		projection, document, _ := strings.Cut(in, " of ")
		document, filter, isFind := strings.Cut(document, " for ")
		opts := Options{}
		if isFind {
			var err error
			opts.Match, err = Compile(doc(t, filter), opts)
			testkit.Check(t, err)
		}
		p, err := CompileProjection(doc(t, projection), opts)
		if err != nil {
			return refused(t, err)
		}
		got, err := p.Apply(doc(t, document))
		if err != nil {
			return refused(t, err)
		}
		return value.Text(got)
	})
}

func TestKeys(t *testing.T) {
	testkit.PlayCases(t, "testdata/keys.txt", func(t *testing.T, in string) string {
		list, document, _ := strings.Cut(in, " of ")
		var paths [][]string
		for _, path := range doc(t, `{"paths":`+list+`}`)[0].Value.(bson.A) {
			paths = append(paths, strings.Split(path.(string), "."))
		}
		keys, err := Keys(doc(t, document), paths, value.Collation{})
		if err != nil {
			return refused(t, err)
		}
		var out []string
		for _, key := range keys {
			out = append(out, value.Text(bson.A(key)))
		}
		return strings.Join(out, " ")
	})
}

func TestUpserts(t *testing.T) {
	testkit.PlayCases(t, "testdata/upserts.txt", func(t *testing.T, in string) string {
		filter, replaces := strings.CutPrefix(in, "replaces ")
		f, err := Compile(doc(t, filter), Options{})
		testkit.Check(t, err)
		got, err := f.Inserted(replaces)
		if err != nil {
			return refused(t, err)
		}
		return value.Text(got)
	})
}

// An error of sleep ends the match and is returned unchanged.
func TestWhereInterrupted(t *testing.T) {
	stop, n := errors.New("stop"), 0
	o := Options{Scripts: &Scripts{Sleep: func(time.Duration) error { n++; return stop }}}
	f, err := Compile(doc(t, `{"$or":[{"$where":"sleep(1)"},{"$where":"sleep(2)"}]}`), o)
	testkit.Check(t, err)
	if _, err := f.Matches(doc(t, `{}`)); err != stop || n != 1 {
		t.Errorf("got %v after %d sleeps", err, n)
	}
}

// naiveSort is a selection sort by one field.
func naiveSort(docs []bson.D, key string, down bool) []bson.D {
	least := func(d bson.D) any {
		v, ok := value.Field(d, key)
		if !ok {
			return nil
		}
		a, ok := v.(bson.A)
		if !ok {
			return v
		}
		if len(a) == 0 {
			return bson.Undefined{}
		}
		best := a[0]
		for _, x := range a {
			if c := value.Compare(x, best); !down && c < 0 || down && c > 0 {
				best = x
			}
		}
		return best
	}
	rest, out := slices.Clone(docs), []bson.D(nil)
	for len(rest) > 0 {
		at := 0
		for i := range rest {
			if c := value.Compare(least(rest[i]), least(rest[at])); !down && c < 0 || down && c > 0 {
				at = i
			}
		}
		out = append(out, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
	return out
}

func TestSortAgainstNaiveSort(t *testing.T) {
	var docs []bson.D
	for _, c := range testkit.Cases(t, file) {
		_, document := parts(t, c.In)
		docs = append(docs, document)
	}
	for _, direction := range []int32{1, -1} {
		o, err := CompileOrder(bson.D{{Key: "a", Value: direction}}, value.Collation{})
		testkit.Check(t, err)
		got := slices.Clone(docs)
		testkit.Check(t, Sort(got, o, func(d bson.D) bson.D { return d }))
		for i, want := range naiveSort(docs, "a", direction < 0) {
			testkit.Equal(t, fmt.Sprint("direction ", direction, ", place ", i), value.Text(got[i]), value.Text(want))
		}
	}
}

// FuzzFilter runs filters on documents. They may fail but not panic.
func FuzzFilter(f *testing.F) {
	for _, c := range testkit.Cases(f, file) {
		filter, document := parts(f, c.In)
		f.Add([]byte(value.Encode(filter)), []byte(value.Encode(document)))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		filter, err1 := value.Decode(a)
		d, err2 := value.Decode(b)
		m, err := Compile(filter, Options{})
		if errors.Join(err, err1, err2) == nil {
			_, _ = m.Matches(d)
		}
	})
}

// What names.txt lists as implemented has a parser, and no other operator has.
func TestNames(t *testing.T) {
	names := append(slices.Collect(maps.Keys(fieldOperators)), "$regex", "$options") // these belong together
	testkit.Equal(t, "conditions", slices.Sorted(slices.Values(names)), faulttest.Implemented("condition"))
	for _, name := range faulttest.Implemented("filter") {
		_, err := Compile(bson.D{{Key: name}}, Options{})
		testkit.Equal(t, name+" is unknown", err != nil && strings.Contains(err.Error(), "unknown top level"), false)
	}
}
