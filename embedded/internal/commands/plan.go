package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// choose returns the index that a server would scan, or nil if it would scan the collection. Queries here always scan:
// the index determines the order of the results, and whether a sort has to read everything first.
func (q *findCommand) choose(c *store.Collection) *store.Index {
	if c == nil || c.IsView() || natural(q.hint) != 0 || len(q.sort) > 0 && q.sort[0].Key == "$natural" {
		return nil
	}
	if q.hint != nil {
		return q.hinted
	}
	var filtered, sorted *store.Index
	for _, x := range c.Indexes {
		if !x.Ordinary() && !(x.Ascends() && within(x, q.filter)) || !x.Collation.Same(q.collation) {
			continue
		}
		constrained, provides := constrains(q.filter, x.Key[0].Key), q.sortedBy(x)
		switch {
		case constrained && (q.sort == nil || provides):
			return x
		case constrained && filtered == nil:
			filtered = x
		case provides && sorted == nil:
			sorted = x
		}
	}
	return cmp.Or(filtered, sorted)
}

// sortedBy reports whether an index has the order of the sort, forward or backward.
func (q *findCommand) sortedBy(x *store.Index) bool {
	if x == nil || len(q.sort) == 0 || len(q.sort) > len(x.Key) {
		return false
	}
	same := 0
	for i, e := range q.sort {
		if e.Key != x.Key[i].Key {
			return false
		}
		same += value.Compare(e.Value, int32(0)) * value.Compare(x.Key[i].Value, int32(0))
	}
	return same == len(q.sort) || same == -len(q.sort)
}

// constrains reports whether a filter has a condition on a field that bounds the scan of an index.
func constrains(filter bson.D, field string) bool {
	for _, e := range filter {
		list, _ := e.Value.(bson.A)
		if e.Key == "$and" && slices.ContainsFunc(list,
			func(v any) bool { d, _ := v.(bson.D); return constrains(d, field) }) {
			return true
		}
		if d, _ := e.Value.(bson.D); e.Key == field && (len(d) == 0 || d[0].Key != "$size" && d[0].Key != "$type") {
			return true
		}
	}
	return false
}

// needsText returns an error if a query has $text and the collection no text index. Otherwise the query uses the index.
func needsText(c *store.Collection, f *query.Filter) error {
	if !f.Text() {
		return nil
	}
	if c != nil {
		isText := func(k bson.E) bool { return k.Value == "text" }
		if i := slices.IndexFunc(c.Indexes, func(x *store.Index) bool { return slices.ContainsFunc(x.Key, isText) }); i >= 0 {
			f.OnTextIndex(c.Indexes[i].Spec)
			return nil
		}
	}
	return fault.Errorf(fault.IndexNotFound, "text index required for $text query")
}

// natural returns 1 or -1 if a hint or sort is $natural, and else 0.
func natural(spec any) int {
	d, _ := spec.(bson.D)
	switch {
	case spec == any("$natural"):
		return 1
	case len(d) > 0 && d[0].Key == "$natural":
		return value.Compare(d[0].Value, int32(0))
	}
	return 0
}

// canonical is a query as messages show it.
type canonical struct {
	ns                       string
	batchSize, limit, skip   int64
	filter, sort, projection bson.D
}

func (q canonical) String() string {
	var b strings.Builder
	b.WriteString("ns=" + q.ns)
	for _, e := range value.Doc("batchSize", q.batchSize, "limit", q.limit, "skip", q.skip) {
		if e.Value != any(int64(0)) {
			fmt.Fprintf(&b, " %s=%d", e.Key, e.Value)
		}
	}
	b.WriteString("Tree: ")
	tree(&b, q.filter)
	fmt.Fprintf(&b, "Sort: %s\nProj: %s\n", value.Text(orEmpty(q.sort)), value.Text(orEmpty(q.projection)))
	return b.String()
}

func orEmpty(d bson.D) bson.D { return append(bson.D{}, d...) }

// operators returns the operators of a condition on a field: a value means $eq.
func operators(condition bson.E) bson.D {
	if d, _ := condition.Value.(bson.D); query.IsOperators(d) {
		return d
	}
	return value.Doc("$eq", condition.Value)
}

// tree writes the conditions of a filter, one a line.
func tree(b *strings.Builder, filter bson.D) {
	var leaves []string
	for _, e := range filter {
		for _, op := range operators(e) {
			leaves = append(leaves, fmt.Sprintf("%s %s %s\n", e.Key, op.Key, value.Text(op.Value)))
		}
	}
	indent := ""
	if len(leaves) != 1 {
		b.WriteString("$and\n")
		indent = "    "
	}
	for _, l := range leaves {
		b.WriteString(indent + l)
	}
}

// hintedIndex returns the index that a hint names. It returns nil without a hint for an index, and an error if the
// index does not exist.
func hintedIndex(c *store.Collection, hint any, q canonical) (*store.Index, error) {
	key, isKey := hint.(bson.D)
	if c == nil || hint == nil || isKey && len(key) == 0 || natural(hint) != 0 {
		return nil, nil
	}
	if x := c.Index(hint); x != nil {
		return x, nil
	}
	q.ns = c.NS()
	return nil, fault.Errorf(fault.BadValue, "error processing query: %s planner returned error :: caused by :: "+
		"hint provided does not correspond to an existing index", q)
}

// within reports whether a partial index has all documents that a filter can match: each condition of the index follows
// from a condition of the filter.
func within(x *store.Index, filter bson.D) bool {
	partial := value.As[bson.D](x.Spec, "partialFilterExpression")
	return partial != nil && !slices.ContainsFunc(partial, func(e bson.E) bool {
		return slices.ContainsFunc(operators(e), func(need bson.E) bool {
			return !slices.ContainsFunc(filter, func(given bson.E) bool {
				return given.Key == e.Key && slices.ContainsFunc(operators(given),
					func(op bson.E) bool { return follows(need, op) })
			})
		})
	})
}

// bounds are the operators that compare, with the sign of what they match and whether they match the bound.
var bounds = map[string]struct {
	sign  int
	equal bool
}{"$gt": {1, false}, "$gte": {1, true}, "$lt": {-1, false}, "$lte": {-1, true}}

// follows reports whether one condition on a field follows from another.
func follows(need, given bson.E) bool {
	outer, isBound := bounds[need.Key]
	inner, compares := bounds[given.Key]
	switch {
	case given.Key == "$eq":
		f, _ := query.Compile(value.Doc("v", bson.D{need}), query.Options{}) // valid: the index exists
		ok, err := f.Matches(value.Doc("v", given.Value))
		return ok && err == nil
	case need.Key == "$exists":
		return compares
	case !isBound || !compares || outer.sign != inner.sign || value.IsNumber(need.Value) != value.IsNumber(given.Value):
		return false
	}
	n := value.Compare(given.Value, need.Value) * outer.sign
	return n > 0 || n == 0 && (outer.equal || !inner.equal)
}
