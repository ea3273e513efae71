package update

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// modifier returns the new value of a field. Both may be value.Missing: a field that does not exist or is removed.
type modifier func(old any) (any, error)

// rearranged is an array that was sorted or cut. It counts as modified even if it is equal.
type rearranged bson.A

// operator is a row of the table of update operators.
type operator struct {
	modify     func(p *parser, f bson.E) modifier // parses the argument for a field
	keepsShape bool                               // creates no fields and ignores a path that cannot exist
}

var operators = map[string]operator{
	"$set":         {modify: set},
	"$setOnInsert": {modify: set},
	"$unset":       {modify: unset, keepsShape: true},
	"$inc":         {modify: arithmetic("$inc", "increment", value.Add)},
	"$mul":         {modify: arithmetic("$mul", "multiply", value.Multiply)},
	"$max":         {modify: extreme(1)},
	"$min":         {modify: extreme(-1)},
	"$bit":         {modify: bit},
	"$currentDate": {modify: currentDate},
	"$rename":      {modify: rename},
	"$pop":         {modify: pop, keepsShape: true},
	"$pullAll":     {modify: pullAll, keepsShape: true},
	"$push": {modify: adding("$push", false,
		"The field '%s' must be an array but is of type %s in document {"+theID+"}")},
	"$addToSet": {modify: adding("$addToSet", true,
		"Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s")},
	"$pull": {modify: pull, keepsShape: true},
}

func set(_ *parser, f bson.E) modifier {
	return func(any) (any, error) { return value.Clone(f.Value), nil }
}

func unset(*parser, bson.E) modifier {
	return func(any) (any, error) { return value.Missing{}, nil }
}

// theID is a placeholder for the document's _id in messages.
const theID = "\x00id"

// arithmetic is $inc or $mul. A missing field counts as zero.
func arithmetic(op, verb string, compute func(a, b any) (any, bool)) func(*parser, bson.E) modifier {
	return func(e *parser, f bson.E) modifier {
		e.Refuse(!value.IsNumber(f.Value), fault.TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb, f.Key,
			value.Text(f.Value))
		return func(old any) (any, error) {
			if value.IsMissing(old) {
				old = int32(0)
			}
			if !value.IsNumber(old) {
				return nil, fault.Errorf(fault.TypeMismatch,
					"Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' of non-numeric type %s", op, theID,
					query.LastPart(f.Key), value.TypeName(old))
			}
			v, ok := compute(old, f.Value)
			if !ok {
				return nil, fault.Errorf(fault.BadValue,
					"Failed to apply %s operations to current value ((NumberLong)%s) for document {%s}", op,
					value.Text(old), theID)
			}
			return v, nil
		}
	}
}

// adding is $push or, with set, $addToSet. format is the error if a field is not an array.
func adding(op string, set bool, format string) func(*parser, bson.E) modifier {
	return func(e *parser, f bson.E) modifier {
		list, arrange := bson.A{f.Value}, func(a bson.A, _ int) any { return a }
		d, _ := f.Value.(bson.D)
		if each, ok := value.Field(d, "$each"); ok && (!set || d[0].Key == "$each") {
			rest := value.Delete(d, "$each")
			e.Refuse(set && len(rest) > 0, fault.BadValue, "Found unexpected fields after $each in $addToSet: %s", value.Text(d))
			if !set {
				arrange = e.arrange(rest)
			}
			list, ok = each.(bson.A)
			e.Refuse(!ok && set, fault.TypeMismatch, "The argument to $each in %s must be an array but it was of type %s", op,
				value.TypeName(each))
			e.Refuse(!ok, fault.BadValue, "The argument to $each in %s must be an array but it was of type: %s", op,
				value.TypeName(each))
		}
		return func(old any) (any, error) {
			a, ok := old.(bson.A)
			if !ok && !value.IsMissing(old) {
				return nil, fault.Errorf(fault.BadValue, format, f.Key, value.TypeName(old))
			}
			out, added := slices.Clone(a), 0
			if out == nil {
				out = bson.A{}
			}
			for _, item := range list {
				if !set || !slices.ContainsFunc(out, func(v any) bool { return e.opts.Collation.Compare(v, item) == 0 }) {
					out = append(out, item)
					added++
				}
			}
			return arrange(out, added), nil
		}
	}
}

// arrange parses $position, $sort and $slice of $push. The returned function applies them to an array to which elements
// have been appended.
func (p *parser) arrange(clauses bson.D) func(a bson.A, added int) any {
	position, limit := (*int64)(nil), (*int64)(nil)
	sort := (func(bson.A))(nil)
	integer := func(e bson.E, format string) *int64 {
		n, ok := value.Int64(e.Value)
		p.Refuse(!ok, fault.BadValue, format, value.TypeName(e.Value))
		return &n
	}
	for _, e := range clauses {
		switch e.Key {
		case "$position":
			position = integer(e, "The value for $position must be an integer value, not of type: %s")
		case "$slice":
			limit = integer(e, "The value for $slice must be an integer value but was given type: %s")
		case "$sort":
			sort = p.pushSort(e.Value)
		default:
			p.Fail(fault.BadValue, "Unrecognized clause in $push: %s", e.Key)
		}
	}
	return func(a bson.A, added int) any {
		if position != nil {
			old, items := a[:len(a)-added], a[len(a)-added:]
			i := *position
			if i < 0 {
				i = max(int64(len(old))+i, 0)
			}
			a = slices.Insert(slices.Clone(old), int(min(i, int64(len(old)))), items...)
		}
		if sort != nil {
			sort(a)
		}
		n := int64(len(a))
		switch {
		case limit == nil:
		case *limit >= 0:
			a = a[:min(*limit, n)]
		default:
			a = a[max(n+*limit, 0):]
		}
		if sort != nil || int64(len(a)) < n {
			return rearranged(a)
		}
		return a
	}
}

// at returns the value at a path, in which a number is a position in an array. $sort of $push compares arrays as a
// whole.
func at(v any, path []string) any {
	for _, part := range path {
		switch x := v.(type) {
		case bson.D:
			v = value.Lookup(x, part)
		case bson.A:
			v = value.Missing{}
			if i, ok := value.Position(part); ok {
				v = value.Element(x, i)
			}
		default:
			return value.Missing{}
		}
	}
	return v
}

// pushSort parses $sort of $push: a direction for the elements, or one for each of some fields.
func (p *parser) pushSort(v any) func(bson.A) {
	fields, isDocument := v.(bson.D)
	p.Refuse(isDocument && len(fields) == 0, fault.BadValue, "The $sort pattern is empty when it should be a set of fields.")
	p.Refuse(!isDocument && !value.IsNumber(v), fault.BadValue,
		"The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
	if !isDocument {
		fields = value.Doc("", v)
	}
	for _, e := range fields {
		n, exact := value.Int64(e.Value)
		p.Refuse(!exact || n != 1 && n != -1, fault.BadValue, "The $sort element value must be either 1 or -1")
		p.Refuse(isDocument && e.Key == "", 15998, "FieldPath field names may not be empty strings.")
	}
	key := func(element any, path string) any {
		if !isDocument {
			return element
		}
		d, _ := element.(bson.D) // another element has no fields
		return value.OrNull(at(d, strings.Split(path, ".")))
	}
	return func(a bson.A) {
		slices.SortStableFunc(a, func(x, y any) int {
			for _, e := range fields {
				if n := p.opts.Collation.Compare(key(x, e.Key), key(y, e.Key)); n != 0 {
					return n * value.Compare(e.Value, int32(0))
				}
			}
			return 0
		})
	}
}

// pull is $pull. An operator or a regular expression is a condition on elements of any type, another document one on
// the fields of elements that are documents, and any other value equals the elements.
func pull(e *parser, f bson.E) modifier {
	const element = "element"
	condition, isDocument := f.Value.(bson.D)
	wrapped := value.Is[bson.Regex](f.Value) || len(condition) > 0 && query.IsOperator(condition[0].Key)
	if wrapped {
		condition = value.Doc(element, f.Value)
	}
	filter, err := query.Compile(condition, e.elements())
	e.Note(err)
	return removing(func(v any) (bool, error) {
		d, ok := v.(bson.D)
		switch {
		case wrapped:
			d = value.Doc(element, v)
		case !isDocument:
			return e.opts.Collation.Compare(v, f.Value) == 0, nil
		case !ok:
			return false, nil
		}
		return filter.Matches(d)
	})
}

// removing removes the elements of an array that match.
func removing(matches func(any) (bool, error)) modifier {
	return func(old any) (any, error) {
		a, ok := old.(bson.A)
		switch {
		case value.IsMissing(old):
			return value.Missing{}, nil
		case !ok:
			return nil, fault.Errorf(fault.BadValue, "Cannot apply $pull to a non-array value")
		}
		out := bson.A{}
		for _, v := range a {
			if matched, err := matches(v); err != nil {
				return nil, err
			} else if !matched {
				out = append(out, v)
			}
		}
		return out, nil
	}
}

func pullAll(e *parser, f bson.E) modifier {
	list, ok := f.Value.(bson.A)
	e.Refuse(!ok, fault.BadValue, "$pullAll requires an array argument but was given a %s", value.TypeName(f.Value))
	return removing(func(v any) (bool, error) {
		return slices.ContainsFunc(list, func(x any) bool { return e.opts.Collation.Compare(x, v) == 0 }), nil
	})
}

func pop(e *parser, f bson.E) modifier {
	n, ok := value.Int64(f.Value)
	e.Refuse(!value.IsNumber(f.Value), fault.FailedToParse, "Expected a number in: %s: %s", f.Key, value.Text(f.Value))
	e.Refuse(!ok, fault.FailedToParse, "Expected an integer: %s: %s", f.Key, value.Text(f.Value))
	e.Refuse(n != 1 && n != -1, fault.FailedToParse, "$pop expects 1 or -1, found: %d", n)
	return func(old any) (any, error) {
		a, ok := old.(bson.A)
		switch {
		case value.IsMissing(old):
			return value.Missing{}, nil
		case !ok:
			return nil, fault.Errorf(fault.TypeMismatch, "Path '%s' contains an element of non-array type '%s'", f.Key,
				value.TypeName(old))
		case len(a) == 0:
			return a, nil
		case n < 0:
			return slices.Clone(a[1:]), nil
		}
		return slices.Clone(a[:len(a)-1]), nil
	}
}

// extreme is $max (1) or $min (-1).
func extreme(sign int) func(*parser, bson.E) modifier {
	return func(e *parser, f bson.E) modifier {
		return func(old any) (any, error) {
			if value.IsMissing(old) || e.opts.Collation.Compare(f.Value, old)*sign > 0 {
				old = value.Clone(f.Value)
			}
			return old, nil
		}
	}
}

func currentDate(e *parser, f bson.E) modifier {
	timestamp := false
	switch v := f.Value.(type) {
	case bool:
	case bson.D:
		for _, option := range v {
			e.Refuse(option.Key != "$type", fault.BadValue, "Unrecognized $currentDate option: %s", option.Key)
			timestamp = option.Value == "timestamp"
			e.Refuse(!timestamp && option.Value != "date", fault.BadValue,
				"The '$type' string field is required to be 'date' or 'timestamp': "+
					"{$currentDate: {field : {$type: 'date'}}}")
		}
	default:
		e.Fail(fault.BadValue, "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).",
			value.TypeName(v))
	}
	return func(any) (any, error) {
		now := time.Now()
		if timestamp {
			return bson.Timestamp{T: uint32(now.Unix()), I: 1}, nil
		}
		return bson.NewDateTimeFromTime(now), nil
	}
}

// bitOperations are the operations of $bit.
var bitOperations = map[string]func(a, b int64) int64{
	"and": func(a, b int64) int64 { return a & b }, "or": func(a, b int64) int64 { return a | b },
	"xor": func(a, b int64) int64 { return a ^ b },
}

func bit(e *parser, f bson.E) modifier {
	const format = "{$bit: {field: {and/or/xor: #}}"
	d, ok := f.Value.(bson.D)
	e.Refuse(!ok, fault.BadValue,
		"The $bit modifier is not compatible with a %s. You must pass in an embedded document: "+format, value.TypeName(f.Value))
	e.Refuse(ok && len(d) == 0, fault.BadValue, "You must pass in at least one bitwise operation. The format is: "+format)
	for _, o := range d {
		e.Refuse(bitOperations[o.Key] == nil, fault.BadValue,
			"The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s: %s}",
			o.Key, o.Key, value.Text(o.Value))
		e.Refuse(!integral(o.Value), fault.BadValue,
			"The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s: %s}",
			value.TypeName(o.Value), o.Key, value.Text(o.Value))
	}
	return func(old any) (any, error) {
		if value.IsMissing(old) {
			old = int32(0)
		}
		if !integral(old) {
			return nil, fault.Errorf(fault.BadValue,
				"Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s",
				theID, query.LastPart(f.Key), value.TypeName(old))
		}
		n, _ := value.Int64(old)
		_, long := old.(int64)
		for _, o := range d {
			x, _ := value.Int64(o.Value)
			n, long = bitOperations[o.Key](n, x), long || value.Is[int64](o.Value)
		}
		if long {
			return n, nil
		}
		return int32(n), nil
	}
}

func integral(v any) bool {
	switch v.(type) {
	case int32, int64:
		return true
	}
	return false
}

// rename checks the argument of $rename: the new path. Update.rename moves the value.
func rename(e *parser, f bson.E) modifier {
	to, ok := f.Value.(string)
	e.Refuse(!ok, fault.BadValue, "The 'to' field for $rename must be a string: %s: %s", f.Key, value.Text(f.Value))
	e.Refuse(to == f.Key, fault.BadValue, "The source and target field for $rename must differ: %s: %s", f.Key,
		value.Text(to))
	e.Refuse(overlap(to, f.Key), fault.BadValue,
		"The source and target field for $rename must not be on the same path: %s: %s", f.Key, value.Text(to))
	for i, path := range []string{f.Key, to} {
		for _, part := range strings.Split(path, ".") {
			e.Refuse(part == "$" || strings.HasPrefix(part, "$["), fault.BadValue,
				"The %s field for $rename may not be dynamic: %s", []string{"source", "destination"}[i], path)
		}
	}
	if ok {
		e.path(to)
	}
	return nil
}

// rename moves the value of a field, if there is one.
func (u *Update) rename(out bson.D, s step) (any, error) {
	var v any
	from := s
	from.keepsShape = true
	from.do = func(old any) (any, error) {
		v = old
		return value.Missing{}, nil
	}
	left, err := u.change(out, strings.Split(s.path, "."), from)
	if err != nil || value.IsMissing(v) {
		return out, err
	}
	if err := outsideArrays("source", s.path, out); err != nil {
		return nil, err
	}
	if err := outsideArrays("destination", s.to, left); err != nil {
		return nil, err
	}
	s.do = func(any) (any, error) { return v, nil }
	return u.change(left, strings.Split(s.to, "."), s)
}

// outsideArrays returns an error if a path of $rename leads through an array.
func outsideArrays(which, path string, d any) error {
	parts := strings.Split(path, ".")
	for i := 1; i < len(parts); i++ {
		if _, isArray := at(d, parts[:i]).(bson.A); isArray {
			return fault.Errorf(fault.BadValue,
				"The %s field cannot be an array element, '%s' in doc with %s has an array field called '%s'", which, path, theID,
				parts[i-1])
		}
	}
	return nil
}

// maxPad is the number of elements by which an update may pad an array, as on the server.
const maxPad = 1500000

// change applies a step at a path below v and returns the new value. v is Missing or a private copy, which may be
// changed in place.
func (u *Update) change(v any, path []string, s step) (any, error) {
	if len(path) == 0 {
		at := strings.Join(s.taken, ".")
		for _, other := range s.run.changed {
			if other.step != s.path && overlap(other.path, at) {
				return nil, fault.Errorf(fault.ConflictingUpdateOperators, conflicts, at, min(at, other.path))
			}
		}
		s.run.changed = append(s.run.changed, change{s.path, at})
		r, err := s.do(v)
		if a, ok := r.(rearranged); ok {
			s.run.modified = true
			return bson.A(a), err
		}
		return r, err
	}
	part := path[0]
	if part == "$" {
		if part = strconv.Itoa(s.position); s.position < 0 {
			return nil, fault.Errorf(fault.BadValue, "The positional operator did not find the match needed from the query.")
		}
	}
	if name, elements := isElements(part); elements {
		return u.changeElements(v, name, path[1:], s)
	}
	before := s.taken
	s.taken = append(before[:len(before):len(before)], part)
	switch x := v.(type) {
	case value.Missing:
		r, err := u.change(v, path[1:], s)
		if value.IsMissing(r) {
			return r, err
		}
		return value.Doc(part, r), err
	case bson.D:
		r, err := u.change(value.Lookup(x, part), path[1:], s)
		switch {
		case err != nil:
			return nil, err
		case value.IsMissing(r):
			return value.Delete(x, part), nil
		}
		return value.Set(x, part, r), nil
	case bson.A:
		if i, ok := value.Position(part); ok {
			r, err := u.change(value.Element(x, i), path[1:], s)
			if err != nil {
				return nil, err
			}
			return element(x, i, r)
		}
	}
	return v, s.notViable(before, part, path[1:], v)
}

// notViable returns the error for a part of a path below a value that is not a document.
func (s step) notViable(before []string, part string, rest []string, v any) error {
	name, path := "", strings.Join(slices.Concat(before, []string{part}, rest), ".")
	if len(before) > 0 {
		name = before[len(before)-1]
	}
	in := fmt.Sprintf("{%s: %s}", name, value.Text(v))
	for i, next := range rest {
		if _, elements := isElements(next); elements {
			return mustExist(append(s.taken, rest[:i]...))
		}
	}
	switch {
	case s.op == "$unset":
		return nil
	case s.keepsShape:
		return fault.Errorf(fault.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element (%s)", part, path,
			in)
	}
	return fault.Errorf(fault.PathNotViable, "Cannot create field '%s' in element %s", part, in)
}

func mustExist(path []string) error {
	return fault.Errorf(fault.BadValue, "The path '%s' must exist in the document in order to apply array updates.",
		strings.Join(path, "."))
}

// changeElements applies a step to the elements of an array that match the array filter of a name. Without such a
// filter, it applies the step to all elements.
func (u *Update) changeElements(v any, name string, path []string, s step) (any, error) {
	a, ok := v.(bson.A)
	switch {
	case value.IsMissing(v):
		return nil, mustExist(s.taken)
	case !ok:
		return nil, fault.Errorf(fault.BadValue, "Cannot apply array updates to non-array element %s: %s",
			s.taken[len(s.taken)-1], value.Text(v))
	}
	before := s.taken
	original, _ := at(s.run.doc, before).(bson.A) // array filters do not see what other steps have changed
	for i, item := range a {
		if filter := u.filters[name]; filter != nil {
			ok, err := filter.Matches(value.Doc(name, value.Element(original, i)))
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		s.taken = append(before[:len(before):len(before)], strconv.Itoa(i))
		r, err := u.change(item, path, s)
		if err != nil {
			return nil, err
		}
		a, _ = element(a, i, r) // cannot fail: the element exists
	}
	return a, nil
}

// element stores the result of a modifier in an array. A removed element becomes null.
func element(a bson.A, i int, r any) (bson.A, error) {
	switch {
	case value.IsMissing(r) && i >= len(a):
		return a, nil
	case value.IsMissing(r):
		r = nil
	case i-len(a) > maxPad:
		return nil, fault.Errorf(fault.CannotBackfillArray, "can't backfill more than %d elements", maxPad)
	}
	for len(a) <= i {
		a = append(a, nil)
	}
	a[i] = r
	return a, nil
}
