package update

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// modifier returns the new value of a field. The old value may be value.Missing.
type modifier func(old any) (any, error)

// removed is returned by a modifier to remove the field.
type removed struct{}

// operator is a row of the table of update operators.
type operator struct {
	modify     func(e *fault.First, f bson.E) modifier // parses the argument for a field
	keepsShape bool                                    // creates no fields and ignores a path that cannot exist
}

var operators = map[string]operator{
	"$set":         {modify: set},
	"$setOnInsert": {modify: set},
	"$unset":       {modify: unset, keepsShape: true},
	"$inc":         {modify: arithmetic("$inc", "increment", value.Add)},
	"$mul":         {modify: arithmetic("$mul", "multiply", value.Multiply)},
	"$push":        {modify: adding("$push", false, "The field '%s' must be an array but is of type %s in document {_id: "+theID+"}")},
	"$addToSet":    {modify: adding("$addToSet", true, "Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s")},
	"$pull":        {modify: pull, keepsShape: true},
}

func missing(v any) bool { return v == any(value.Missing{}) }

func set(_ *fault.First, f bson.E) modifier {
	return func(any) (any, error) { return value.Clone(f.Value), nil }
}

func unset(*fault.First, bson.E) modifier {
	return func(any) (any, error) { return removed{}, nil }
}

// theID is a placeholder for the document's _id in messages.
const theID = "\x00id"

// arithmetic is $inc or $mul. A missing field counts as zero.
func arithmetic(op, verb string, compute func(a, b any) (any, bool)) func(*fault.First, bson.E) modifier {
	return func(e *fault.First, f bson.E) modifier {
		e.Refuse(!value.IsNumber(f.Value), fault.TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb, f.Key, value.Text(f.Value))
		return func(old any) (any, error) {
			if missing(old) {
				old = int32(0)
			}
			if !value.IsNumber(old) {
				return nil, fault.Errorf(fault.TypeMismatch, "Cannot apply %s to a value of non-numeric type. {_id: %s} has the field '%s' of non-numeric type %s", op, theID, f.Key, value.TypeName(old))
			}
			v, ok := compute(old, f.Value)
			if !ok {
				return nil, fault.Errorf(fault.BadValue, "Failed to apply %s operations to current value ((NumberLong)%s) for document {_id: %s}", op, value.Text(old), theID)
			}
			return v, nil
		}
	}
}

// adding is $push or, with set, $addToSet, which ignores the collation. format is the error if a field is no array.
func adding(op string, set bool, format string) func(*fault.First, bson.E) modifier {
	return func(e *fault.First, f bson.E) modifier {
		list := bson.A{f.Value}
		d, _ := f.Value.(bson.D)
		if each, ok := value.Field(d, "$each"); ok {
			if len(d) > 1 {
				e.Fail(fault.BadValue, "Unrecognized clause in %s: %s", op, value.Delete(d, "$each")[0].Key)
			}
			list, ok = each.(bson.A)
			e.Refuse(!ok, fault.BadValue, "The argument to $each in %s must be an array but it was of type: %s", op, value.TypeName(each))
		}
		return func(old any) (any, error) {
			a, ok := old.(bson.A)
			if !ok && !missing(old) {
				return nil, fault.Errorf(fault.BadValue, format, f.Key, value.TypeName(old))
			}
			out := slices.Clone(a)
			for _, item := range list {
				if !set || !slices.ContainsFunc(out, func(v any) bool { return value.Equal(v, item) }) {
					out = append(out, item)
				}
			}
			return out, nil
		}
	}
}

// pull is $pull; it ignores the collation. An argument that begins with an operator is a condition on elements of
// any type. Any other document is a condition on the fields of elements that are documents.
func pull(e *fault.First, f bson.E) modifier {
	const element = "element"
	condition, isDocument := f.Value.(bson.D)
	wrapped := len(condition) > 0 && strings.HasPrefix(condition[0].Key, "$")
	if wrapped {
		condition = bson.D{{Key: element, Value: condition}}
	}
	filter, err := query.Compile(condition, query.Options{})
	e.Note(err)
	matches := func(v any) (bool, error) {
		d, ok := v.(bson.D)
		switch {
		case !isDocument:
			return value.Equal(v, f.Value), nil
		case wrapped:
			d = bson.D{{Key: element, Value: v}}
		case !ok:
			return false, nil
		}
		return filter.Matches(d)
	}
	return func(old any) (any, error) {
		a, ok := old.(bson.A)
		switch {
		case missing(old):
			return removed{}, nil
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

// maxPad is the number of elements by which an update may pad an array, as on the server.
const maxPad = 1500000

// change applies a step at parts[at:] below v and returns the new value. v is Missing or a private copy, which may
// be changed in place.
func (u *Update) change(v any, parts []string, at int, s step) (any, error) {
	if at == len(parts) {
		return s.do(v)
	}
	part := parts[at]
	if name, elements := isElements(part); elements {
		return u.changeElements(v, name, parts, at, s)
	}
	switch x := v.(type) {
	case value.Missing:
		r, err := u.change(v, parts, at+1, s)
		if r == any(removed{}) {
			return r, err
		}
		return bson.D{{Key: part, Value: r}}, err
	case bson.D:
		r, err := u.change(value.Lookup(x, part), parts, at+1, s)
		switch {
		case err != nil:
			return nil, err
		case r == any(removed{}):
			return value.Delete(x, part), nil
		}
		return value.Set(x, part, r), nil
	case bson.A:
		if i, ok := value.Position(part); ok {
			r, err := u.change(value.Element(x, i), parts, at+1, s)
			if err != nil {
				return nil, err
			}
			return element(x, i, r)
		}
	}
	if s.keepsShape {
		return v, nil
	}
	name := ""
	if at > 0 {
		name = parts[at-1]
	}
	return nil, fault.Errorf(fault.PathNotViable, "Cannot create field '%s' in element {%s: %s}", part, name, value.Text(v))
}

// changeElements applies a step to the elements of an array: those that match the array filter name, or all if
// there is no such filter.
func (u *Update) changeElements(v any, name string, parts []string, at int, s step) (any, error) {
	a, ok := v.(bson.A)
	switch {
	case missing(v):
		return nil, fault.Errorf(fault.BadValue, "The path '%s' must exist in the document in order to apply array updates.", strings.Join(parts[:at], "."))
	case !ok:
		return nil, fault.Errorf(fault.BadValue, "Cannot apply array updates to non-array element %s: %s", parts[at-1], value.Text(v))
	}
	for i, item := range a {
		if filter := u.filters[name]; filter != nil {
			ok, err := filter.Matches(bson.D{{Key: name, Value: item}})
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		r, err := u.change(item, parts, at+1, s)
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
	case r == any(removed{}) && i >= len(a):
		return a, nil
	case r == any(removed{}):
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
