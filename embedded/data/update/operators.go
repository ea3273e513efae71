package update

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// modifier returns the new value of a field; the old one may be value.Missing.
type modifier func(old any) (any, error)

// removed is what a modifier returns to remove a field.
type removed struct{}

// operator is a row of the table of operators.
type operator struct {
	// modify makes the modifier of a field's argument.
	modify func(f bson.E) (modifier, error)
	// never creates: a path that cannot exist is left alone.
	never bool
}

var operators = map[string]operator{
	"$set":         {modify: set},
	"$setOnInsert": {modify: set},
	"$unset":       {modify: unset, never: true},
	"$inc":         {modify: arithmetic("$inc", "increment", value.Add)},
	"$mul":         {modify: arithmetic("$mul", "multiply", value.Multiply)},
	"$push":        {modify: push},
	"$addToSet":    {modify: addToSet},
	"$pull":        {modify: pull, never: true},
}

func missing(v any) bool { return v == any(value.Missing{}) }

func set(f bson.E) (modifier, error) {
	return func(any) (any, error) { return value.Clone(f.Value), nil }, nil
}

func unset(bson.E) (modifier, error) {
	return func(any) (any, error) { return removed{}, nil }, nil
}

// theID stands in messages for the _id of the document.
const theID = "\x00id"

// arithmetic is $inc and $mul, for which a missing field is zero.
func arithmetic(op, verb string, f func(a, b any) (any, bool)) func(bson.E) (modifier, error) {
	return func(e bson.E) (modifier, error) {
		if !value.IsNumber(e.Value) {
			return nil, command.Errorf(command.CodeTypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb, e.Key, value.Text(e.Value))
		}
		return func(old any) (any, error) {
			if missing(old) {
				old = int32(0)
			}
			if !value.IsNumber(old) {
				return nil, command.Errorf(command.CodeTypeMismatch, "Cannot apply %s to a value of non-numeric type. {_id: %s} has the field '%s' of non-numeric type %s", op, theID, e.Key, value.TypeName(old))
			}
			v, ok := f(old, e.Value)
			if !ok {
				return nil, command.Errorf(command.CodeBadValue, "Failed to apply %s operations to current value ((NumberLong)%s) for document {_id: %s}", op, value.Text(old), theID)
			}
			return v, nil
		}, nil
	}
}

// items are the values that $push or $addToSet adds: one, or those of $each.
func items(op string, f bson.E) (bson.A, error) {
	d, _ := f.Value.(bson.D)
	each, ok := value.Field(d, "$each")
	if !ok {
		return bson.A{f.Value}, nil
	}
	list, ok := each.(bson.A)
	switch {
	case len(d) > 1:
		return nil, command.Errorf(command.CodeBadValue, "Unrecognized clause in %s: %s", op, value.Delete(d, "$each")[0].Key)
	case !ok:
		return nil, command.Errorf(command.CodeBadValue, "The argument to $each in %s must be an array but it was of type: %s", op, value.TypeName(each))
	}
	return list, nil
}

func push(f bson.E) (modifier, error) {
	list, err := items("$push", f)
	return func(old any) (any, error) {
		a, ok := old.(bson.A)
		if !ok && !missing(old) {
			return nil, command.Errorf(command.CodeBadValue, "The field '%s' must be an array but is of type %s in document {_id: %s}", f.Key, value.TypeName(old), theID)
		}
		return append(slices.Clone(a), list...), nil
	}, err
}

// addToSet is $addToSet, without the collation.
func addToSet(f bson.E) (modifier, error) {
	list, err := items("$addToSet", f)
	return func(old any) (any, error) {
		a, ok := old.(bson.A)
		if !ok && !missing(old) {
			return nil, command.Errorf(command.CodeBadValue, "Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", f.Key, value.TypeName(old))
		}
		out := slices.Clone(a)
		for _, item := range list {
			if !slices.ContainsFunc(out, func(v any) bool { return value.Equal(v, item) }) {
				out = append(out, item)
			}
		}
		return out, nil
	}, err
}

// pull is $pull, without the collation. A document that begins with an operator is a
// condition on elements of any type, another one on the fields of documents.
func pull(f bson.E) (modifier, error) {
	const element = "element"
	condition, isDocument := f.Value.(bson.D)
	wrapped := len(condition) > 0 && strings.HasPrefix(condition[0].Key, "$")
	if wrapped {
		condition = bson.D{{Key: element, Value: condition}}
	}
	filter, err := query.Compile(condition, query.Options{})
	matches := func(v any) (bool, error) {
		d, is := v.(bson.D)
		switch {
		case !isDocument:
			return value.Equal(v, f.Value), nil
		case wrapped:
			d, is = bson.D{{Key: element, Value: v}}, true
		}
		if !is {
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
			return nil, command.Errorf(command.CodeBadValue, "Cannot apply $pull to a non-array value")
		}
		out := bson.A{}
		for _, v := range a {
			if gone, err := matches(v); err != nil {
				return nil, err
			} else if !gone {
				out = append(out, v)
			}
		}
		return out, nil
	}, err
}

// position is an array index in a path.
func position(part string) (int, bool) {
	if part == "" || part[0] < '0' || part[0] > '9' || len(part) > 9 || len(part) > 1 && part[0] == '0' {
		return 0, false
	}
	i, err := strconv.Atoi(part)
	return i, err == nil
}

// maxPad is how far beyond its end an array may be extended.
const maxPad = 1500000

// change applies a step at a path, changing v in place where it can: v is a
// private copy, or Missing.
func change(v any, parts []string, at int, s step) (any, error) {
	if at == len(parts) {
		return s.do(v)
	}
	part := parts[at]
	switch x := v.(type) {
	case value.Missing:
		r, err := change(v, parts, at+1, s)
		if r == any(removed{}) {
			return r, err
		}
		return bson.D{{Key: part, Value: r}}, err
	case bson.D:
		i := slices.IndexFunc(x, func(e bson.E) bool { return e.Key == part })
		r, err := change(child(x, part), parts, at+1, s)
		switch {
		case err != nil:
			return nil, err
		case r == any(removed{}):
			return value.Delete(x, part), nil
		case i < 0:
			return append(x, bson.E{Key: part, Value: r}), nil
		}
		x[i].Value = r
		return x, nil
	case bson.A:
		if i, ok := position(part); ok {
			r, err := change(child(x, part), parts, at+1, s)
			if err != nil {
				return nil, err
			}
			return element(x, i, r)
		}
	}
	if s.never {
		return v, nil
	}
	name := ""
	if at > 0 {
		name = parts[at-1]
	}
	return nil, command.Errorf(command.CodePathNotViable, "Cannot create field '%s' in element {%s: %s}", part, name, value.Text(v))
}

// element puts what a modifier has returned into an array. An element that is removed leaves its place.
func element(a bson.A, i int, r any) (bson.A, error) {
	switch {
	case r == any(removed{}) && i >= len(a):
		return a, nil
	case r == any(removed{}):
		r = nil
	case i-len(a) > maxPad:
		return nil, command.Errorf(command.CodeCannotBackfillArray, "can't backfill more than %d elements", maxPad)
	}
	for len(a) <= i {
		a = append(a, nil)
	}
	a[i] = r
	return a, nil
}

// child is the value of a field or an index, or Missing.
func child(v any, part string) any {
	switch x := v.(type) {
	case bson.D:
		if f, ok := value.Field(x, part); ok {
			return f
		}
	case bson.A:
		if i, ok := position(part); ok && i < len(x) {
			return x[i]
		}
	}
	return value.Missing{}
}
