package query

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// doc reads Extended JSON.
func doc(t testing.TB, s string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	// As documents come from the wire: null is nil.
	return value.Must(value.Encode(d))
}

var matches = []struct {
	reason, filter, doc string
	want                bool
}{
	{"an empty filter matches everything", `{}`, `{"a":1}`, true},
	{"numbers are equal across types", `{"a":1}`, `{"a":1.0}`, true},
	{"and are not truncated", `{"a":1}`, `{"a":1.5}`, false},
	{"large int64 are not rounded", `{"a":{"$numberLong":"9007199254740993"}}`, `{"a":9007199254740992.0}`, false},
	{"a string is not a number", `{"a":1}`, `{"a":"1"}`, false},
	{"null matches what is not there", `{"a":null}`, `{"b":1}`, true},
	{"but not a value", `{"a":null}`, `{"a":0}`, false},
	{"a value matches an element of an array", `{"a":2}`, `{"a":[1,2]}`, true},
	{"an array matches the whole", `{"a":[1,2]}`, `{"a":[1,2]}`, true},
	{"in its order", `{"a":[2,1]}`, `{"a":[1,2]}`, false},
	{"or as an element", `{"a":[1,2]}`, `{"a":[[1,2]]}`, true},
	{"documents are compared with their order", `{"a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`, false},
	{"a path goes into documents", `{"a.b":1}`, `{"a":{"b":1}}`, true},
	{"and through arrays", `{"a.b":1}`, `{"a":[{"b":0},{"b":1}]}`, true},
	{"and by an index", `{"a.1":5}`, `{"a":[4,5]}`, true},
	{"an index beyond the end finds nothing", `{"a.2":5}`, `{"a":[4,5]}`, false},
	{"$gt compares numbers", `{"a":{"$gt":1}}`, `{"a":2}`, true},
	{"and not other types", `{"a":{"$gt":1}}`, `{"a":"2"}`, false},
	{"both bounds may be met by different elements", `{"a":{"$gt":1,"$lt":2}}`, `{"a":[0,3]}`, true},
	{"$elemMatch requires one element for both", `{"a":{"$elemMatch":{"$gt":1,"$lt":2}}}`, `{"a":[0,3]}`, false},
	{"$elemMatch does not look into arrays of arrays", `{"a":{"$elemMatch":{"$gt":1}}}`, `{"a":[[2,3]]}`, false},
	{"unless another one does", `{"a":{"$elemMatch":{"$elemMatch":{"$gt":2}}}}`, `{"a":[[2,3]]}`, true},
	{"$elemMatch finds arrays as a whole", `{"a":{"$elemMatch":{"$size":2}}}`, `{"a":[[2,3]]}`, true},
	{"$elemMatch on documents", `{"a":{"$elemMatch":{"x":1,"y":2}}}`, `{"a":[{"x":1,"y":1},{"x":1,"y":2}]}`, true},
	{"$gte null matches what is not there", `{"a":{"$gte":null}}`, `{}`, true},
	{"$lt with NaN matches nothing", `{"a":{"$lt":{"$numberDouble":"NaN"}}}`, `{"a":1}`, false},
	{"$ne is the negation over all elements", `{"a":{"$ne":1}}`, `{"a":[1,2]}`, false},
	{"$nin matches what is not there", `{"a":{"$nin":[1]}}`, `{}`, true},
	{"$in with a regular expression", `{"a":{"$in":[{"$regularExpression":{"pattern":"^x","options":""}}]}}`, `{"a":"xy"}`, true},
	{"$exists false", `{"a":{"$exists":false}}`, `{"a":null}`, false},
	{"$exists true for null", `{"a":{"$exists":true}}`, `{"a":null}`, true},
	{"$type by name", `{"a":{"$type":"string"}}`, `{"a":"x"}`, true},
	{"$type of an element", `{"a":{"$type":"int"}}`, `{"a":["x",1]}`, true},
	{"$type array is of the whole", `{"a":{"$type":"array"}}`, `{"a":[]}`, true},
	{"$type number", `{"a":{"$type":"number"}}`, `{"a":1.5}`, true},
	{"$regex with options", `{"a":{"$regex":"^AB","$options":"i"}}`, `{"a":"abc"}`, true},
	{"a regular expression as value", `{"a":{"$regularExpression":{"pattern":"b$","options":""}}}`, `{"a":"abc"}`, false},
	{"$size", `{"a":{"$size":2}}`, `{"a":[1,2]}`, true},
	{"$size of what is not an array", `{"a":{"$size":1}}`, `{"a":1}`, false},
	{"$all", `{"a":{"$all":[1,2]}}`, `{"a":[2,3,1]}`, true},
	{"$all misses one", `{"a":{"$all":[1,4]}}`, `{"a":[2,3,1]}`, false},
	{"$all of nothing matches nothing", `{"a":{"$all":[]}}`, `{"a":[]}`, false},
	{"$mod", `{"a":{"$mod":[4,1]}}`, `{"a":9}`, true},
	{"$mod of a negative number", `{"a":{"$mod":[4,-1]}}`, `{"a":-9}`, true},
	{"$not", `{"a":{"$not":{"$gt":1}}}`, `{"a":0}`, true},
	{"$not matches what is not there", `{"a":{"$not":{"$gt":1}}}`, `{}`, true},
	{"$or", `{"$or":[{"a":1},{"b":1}]}`, `{"b":1}`, true},
	{"$nor", `{"$nor":[{"a":1},{"b":1}]}`, `{"b":1}`, false},
	{"$and", `{"$and":[{"a":1},{"b":1}]}`, `{"a":1}`, false},
	{"$expr compares fields", `{"$expr":{"$gt":["$a","$b"]}}`, `{"a":2,"b":1}`, true},
	{"$bitsAllSet", `{"a":{"$bitsAllSet":[0,2]}}`, `{"a":5}`, true},
	{"$bitsAnyClear", `{"a":{"$bitsAnyClear":5}}`, `{"a":5}`, false},
	{"$comment changes nothing", `{"$comment":"x","a":1}`, `{"a":1}`, true},
	{"Decimal128 equals an int", `{"a":{"$numberDecimal":"1.0"}}`, `{"a":1}`, true},
}

func TestMatches(t *testing.T) {
	for _, row := range matches {
		f, err := Compile(doc(t, row.filter), Options{Now: time.Now()})
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		got, err := f.Matches(doc(t, row.doc))
		if err != nil || got != row.want {
			t.Errorf("%s: %s on %s: got %v, %v", row.reason, row.filter, row.doc, got, err)
		}
	}
}

func TestCollation(t *testing.T) {
	for collation, equal := range map[string]bool{ // x to X
		`{"locale":"en","strength":2}`: true, `{"locale":"en","strength":2,"caseLevel":true}`: false, `{"locale":"en"}`: false,
		`{"locale":"simple"}`: false,
	} {
		c, err := ParseCollation(doc(t, collation))
		testkit.Check(t, err)
		f, err := Compile(doc(t, `{"a":"X"}`), Options{Collation: c})
		testkit.Check(t, err)
		if got, err := f.Matches(doc(t, `{"a":"x"}`)); got != equal || err != nil {
			t.Errorf("%s: got %v, %v", collation, got, err)
		}
	}
}

// TestRefusedFilters are filters that fail, some only on a document.
func TestRefusedFilters(t *testing.T) {
	for _, row := range []struct {
		reason, filter string
		code           int32
		text           string
	}{
		{"an unknown operator at the top", `{"$nosuch":1}`, 2, "unknown top level operator: $nosuch"},
		{"an unknown operator", `{"x":{"$nosuch":1}}`, 2, "unknown operator: $nosuch"},
		{"$or of nothing", `{"$or":[]}`, 2, "$and/$or/$nor must be a nonempty array"},
		{"$in of what is not an array", `{"a":{"$in":1}}`, 2, "$in needs an array"},
		{"$where where scripts are not allowed", `{"$where":"1"}`, 2, "$where is not allowed in this context"},
		{"an unknown type", `{"a":{"$type":"x"}}`, 2, "Unknown type name alias: x"},
		{"a negative size", `{"a":{"$size":-1}}`, 2, "Failed to parse $size. Expected a non-negative number in: $size: -1"},
		{"an expression in an upsert's filter", `{"$and":[{"$expr":true}]}`, 224, "$expr is not allowed in the query predicate for an upsert"},
		{"an unknown expression", `{"$expr":{"$nosuch":1}}`, 168, "Unrecognized expression '$nosuch'"},
		{"an expression that fails in a part of $or", `{"$or":[{"$expr":{"$divide":[1,"$a"]}},{"b":1}]}`, 2, "can't $divide by zero"},
		{"a server without a script engine", `{"$where":"off"}`, 2, ""},
		{"$where is neither string nor code", `{"$where":1}`, 2, ""},
		{"$where below the top", `{"a":{"$elemMatch":{"$where":"1"}}}`, 2, ""},
		{"$where is not JavaScript", `{"$where":"1 +"}`, 139, ""},
		{"JavaScript that is not supported", `{"$where":"while (true) {}"}`, 139, ""},
		{"an unknown variable", `{"$where":"nosuch"}`, 139, ""},
		{"an endless function", `{"$where":"function() { let f = () => f(); return f(); }"}`, 139, ""},
	} {
		o := Options{Upsert: row.code == 224}
		if row.text == "" {
			o.Scripts = &Scripts{Disabled: strings.Contains(row.filter, "off"), Sleep: func(time.Duration) error { return nil }}
		}
		f, err := Compile(doc(t, row.filter), o)
		if err == nil {
			_, err = f.Matches(doc(t, `{"a":0,"b":1}`))
		}
		if e, ok := err.(*command.Error); !ok || e.Code != row.code || row.text != "" && e.Message != row.text {
			t.Errorf("%s: got %v", row.reason, err)
		}
	}
}

func TestProjections(t *testing.T) {
	for _, row := range []struct{ reason, projection, doc, want string }{
		{"inclusion keeps _id", `{"a":1}`, `{"_id":1,"a":2,"b":3}`, `{"_id":1,"a":2}`},
		{"unless it is excluded", `{"a":1,"_id":0}`, `{"_id":1,"a":2,"b":3}`, `{"a":2}`},
		{"exclusion", `{"a":0}`, `{"_id":1,"a":2,"b":3}`, `{"_id":1,"b":3}`},
		{"_id alone excluded keeps the rest", `{"_id":0}`, `{"_id":1,"a":2}`, `{"a":2}`},
		{"_id alone included drops the rest", `{"_id":1}`, `{"_id":1,"a":2}`, `{"_id":1}`},
		{"a path through arrays", `{"a.b":1}`, `{"a":[{"b":1,"c":2},3]}`, `{"a":[{"b":1}]}`},
		{"$slice", `{"a":{"$slice":-1}}`, `{"a":[1,2],"b":1}`, `{"a":[2],"b":1}`},
		{"$elemMatch", `{"a":{"$elemMatch":{"x":2}}}`, `{"a":[{"x":1},{"x":2},{"x":2}],"b":1}`, `{"a":[{"x":2}]}`},
		{"a computed field", `{"y":{"$add":["$x",1]}}`, `{"x":1}`, `{"y":2}`},
	} {
		p, err := CompileProjection(doc(t, row.projection), Options{}, false)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		got, err := p.Apply(doc(t, row.doc), Match{-1})
		if err != nil || value.Text(got) != value.Text(doc(t, row.want)) {
			t.Errorf("%s: got %s, %v, want %s", row.reason, value.Text(got), err, row.want)
		}
	}
	if _, err := CompileProjection(doc(t, `{"a":1,"b":0}`), Options{}, false); err == nil {
		t.Error("inclusion and exclusion mixed are not refused")
	}
	f, err := Compile(doc(t, `{"a":{"$elemMatch":{"x":2}}}`), Options{})
	testkit.Check(t, err)
	if _, m, _ := f.Find(doc(t, `{"a":[{"x":1},{"x":2}]}`)); m.Index != 1 {
		t.Errorf("the positional operator means index %d, not 1", m.Index)
	}
}

func TestWhere(t *testing.T) {
	for _, row := range []struct {
		reason string
		where  any
		want   bool
		slept  time.Duration
	}{
		{"an expression", "this.a == 1", true, 0},
		{"an expression that is false", "this.a == 2", false, 0},
		{"the document has a name, too", "obj.b.c > 2;", true, 0},
		{"what is not there", "this.nothing", false, 0},
		{"a function", "function() { return this.a === 1; }", true, 0},
		{"a function with a name and a parameter", "function f(x) { return obj.a < 0; }", false, 0},
		{"an arrow function", "() => true", true, 0},
		{"a function that returns nothing", "function() { this.a; }", false, 0},
		{"the body of a function", "var x = this.a; return x + 1 == 2", true, 0},
		{"a body without return", "var x = this.a;", false, 0},
		{"code", bson.JavaScript("this.a"), true, 0},
		{"code with a scope", bson.CodeWithScope{Code: "this.a == n", Scope: bson.D{{Key: "n", Value: int32(1)}}}, true, 0},
		{"an empty string is false", "''", false, 0},
		{"any other is true", "'0'", true, 0},
		{"sleep gives nothing", "sleep(10)", false, 10 * time.Millisecond},
		{"and what follows is evaluated", "sleep(2000) || true", true, 2 * time.Second},
		{"within a function", "function() { sleep(100); return true; }", true, 100 * time.Millisecond},
		{"twice", "function() { sleep(1); sleep(2); return this.a; }", true, 3 * time.Millisecond},
		{"sleep of what is not a time", "sleep('x') || sleep(-1) || sleep() || true", true, 0},
		{"sleep that is not reached", "this.a || sleep(1000)", true, 0},
	} {
		var slept time.Duration
		o := Options{Scripts: &Scripts{Sleep: func(d time.Duration) error { slept += d; return nil }}}
		f, err := Compile(bson.D{{Key: "$where", Value: row.where}}, o)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		got, err := f.Matches(doc(t, `{"a":1,"b":{"c":3}}`))
		if err != nil || got != row.want || slept != row.slept {
			t.Errorf("%s: got %v after %v, %v; want %v after %v", row.reason, got, slept, err, row.want, row.slept)
		}
	}
}

// What ends a sleep ends the match, as it is, and no further sleep begins.
func TestWhereThatIsInterrupted(t *testing.T) {
	stop, n := errors.New("stop"), 0
	o := Options{Scripts: &Scripts{Sleep: func(time.Duration) error { n++; return stop }}}
	f, err := Compile(doc(t, `{"$or":[{"$where":"sleep(1)"},{"$where":"sleep(2)"}]}`), o)
	testkit.Check(t, err)
	if _, err := f.Matches(doc(t, `{}`)); err != stop || n != 1 {
		t.Errorf("got %v after %d sleeps", err, n)
	}
}

// naiveSort picks the least of the rest again and again, and looks up what a
// document sorts by in the plainest way.
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

func TestSortAgainstTwin(t *testing.T) {
	var docs []bson.D
	for _, row := range matches {
		docs = append(docs, doc(t, row.doc))
	}
	for _, down := range []bool{false, true} {
		n := int32(1)
		if down {
			n = -1
		}
		o, err := CompileOrder(bson.D{{Key: "a", Value: n}}, nil)
		testkit.Check(t, err)
		got := slices.Clone(docs)
		Sort(got, o, func(d bson.D) bson.D { return d })
		want := naiveSort(docs, "a", down)
		for i := range want {
			if value.Text(got[i]) != value.Text(want[i]) {
				t.Errorf("down %v, place %d: got %s, want %s", down, i, value.Text(got[i]), value.Text(want[i]))
			}
		}
	}
}

// FuzzFilter runs any filter on any document: it may refuse, and not panic; and
// a filter with $nor finds the opposite.
func FuzzFilter(f *testing.F) {
	for _, row := range matches {
		f.Add([]byte(value.Encode(doc(f, row.filter))), []byte(value.Encode(doc(f, row.doc))))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		filter, err1 := value.Decode(a)
		d, err2 := value.Decode(b)
		m, err := Compile(filter, Options{})
		if errors.Join(err, err1, err2) != nil {
			return
		}
		got, err := m.Matches(d)
		if err != nil {
			return
		}
		n, err := Compile(bson.D{{Key: "$nor", Value: bson.A{filter}}}, Options{})
		if err != nil {
			return // one level deeper may be too deep
		}
		if opposite, err := n.Matches(d); err != nil || opposite == got && !random(filter) {
			t.Errorf("%s on %s: %v, and $nor %v, %v", value.Text(filter), value.Text(d), got, opposite, err)
		}
	})
}

// random says whether a filter throws dice.
func random(v any) bool {
	switch x := v.(type) {
	case bson.D:
		for _, e := range x {
			if e.Key == "$rand" || random(e.Value) {
				return true
			}
		}
	case bson.A:
		return slices.ContainsFunc(x, random)
	}
	return false
}
