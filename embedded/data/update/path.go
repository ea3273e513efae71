package update

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

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
