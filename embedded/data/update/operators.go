package update

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// modifier is the new value of a field; the old one may be value.Missing.
type modifier func(old any) (any, error)

// operators make the modifier of a field's argument.
var operators = map[string]func(f bson.E, opts *Options) (modifier, error){
	"$set":         set,
	"$setOnInsert": set,
	"$unset":       func(bson.E, *Options) (modifier, error) { return func(any) (any, error) { return removed{}, nil }, nil },
	"$inc":         inc,
	"$mul":         mul,
	"$min":         extreme(-1),
	"$max":         extreme(1),
	"$rename":      renames,
	"$currentDate": currentDate,
	"$push":        push,
	"$addToSet":    addToSet,
	"$pop":         pop,
	"$pull":        pull,
	"$pullAll":     pullAll,
	"$bit":         bit,
}

func missing(v any) bool { return v == any(value.Missing{}) }

func set(f bson.E, _ *Options) (modifier, error) {
	v := f.Value
	return func(any) (any, error) { return value.Clone(v), nil }, nil
}

func inc(f bson.E, _ *Options) (modifier, error) {
	if !value.IsNumber(f.Value) {
		return nil, command.Errorf(command.CodeTypeMismatch, "Cannot increment with non-numeric argument: {%s: %s}", f.Key, value.Text(f.Value))
	}
	return func(old any) (any, error) {
		if missing(old) {
			return f.Value, nil
		}
		if !value.IsNumber(old) {
			return nil, command.Errorf(command.CodeTypeMismatch, "Cannot apply $inc to a value of non-numeric type. {_id: \x00id} has the field '%s' of non-numeric type %s", f.Key, value.TypeName(old))
		}
		v, ok := value.Add(old, f.Value)
		if !ok {
			return nil, command.Errorf(command.CodeBadValue, "Failed to apply $inc operations to current value ((NumberLong)%s) for document {_id: \x00id}", value.Text(old))
		}
		return v, nil
	}, nil
}

func mul(f bson.E, _ *Options) (modifier, error) {
	if !value.IsNumber(f.Value) {
		return nil, command.Errorf(command.CodeTypeMismatch, "Cannot multiply with non-numeric argument: {%s: %s}", f.Key, value.Text(f.Value))
	}
	return func(old any) (any, error) {
		if missing(old) {
			v, _ := value.Multiply(f.Value, int32(0))
			return v, nil
		}
		if !value.IsNumber(old) {
			return nil, command.Errorf(command.CodeTypeMismatch, "Cannot apply $mul to a value of non-numeric type. {_id: \x00id} has the field '%s' of non-numeric type %s", f.Key, value.TypeName(old))
		}
		v, ok := value.Multiply(old, f.Value)
		if !ok {
			return nil, command.Errorf(command.CodeBadValue, "Failed to apply $mul operations to current value ((NumberLong)%s) for document {_id: \x00id}", value.Text(old))
		}
		return v, nil
	}, nil
}

func extreme(sign int) func(bson.E, *Options) (modifier, error) {
	return func(f bson.E, opts *Options) (modifier, error) {
		return func(old any) (any, error) {
			if missing(old) || opts.Collation.Compare(f.Value, old)*sign > 0 {
				return value.Clone(f.Value), nil
			}
			return untouched{}, nil
		}, nil
	}
}

func renames(f bson.E, _ *Options) (modifier, error) {
	to, ok := f.Value.(string)
	if !ok {
		return nil, command.Errorf(command.CodeBadValue, "The 'to' field for $rename must be a string: %s: %s", f.Key, value.Text(f.Value))
	}
	if err := checkPath(to); err != nil {
		return nil, err
	}
	if to == f.Key {
		return nil, command.Errorf(command.CodeBadValue, "The source and target field for $rename must differ: %s: \"%s\"", f.Key, to)
	}
	return nil, nil
}

func currentDate(f bson.E, opts *Options) (modifier, error) {
	stamp := false
	switch x := f.Value.(type) {
	case bool:
	case bson.D:
		t, _ := value.Field(x, "$type")
		switch t {
		case "date":
		case "timestamp":
			stamp = true
		default:
			return nil, command.Errorf(command.CodeBadValue, "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
		}
	default:
		return nil, command.Errorf(command.CodeBadValue, "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).", value.TypeName(f.Value))
	}
	now := opts.Now
	return func(any) (any, error) {
		if stamp {
			return bson.Timestamp{T: uint32(now.Unix()), I: 1}, nil
		}
		return bson.NewDateTimeFromTime(now), nil
	}, nil
}

// array is the array that an operator changes; nil if it does not exist yet.
func array(f bson.E, op string, old any) (bson.A, error) {
	if missing(old) {
		return nil, nil
	}
	a, ok := old.(bson.A)
	if !ok {
		switch op {
		case "$push":
			return nil, command.Errorf(command.CodeBadValue, "The field '%s' must be an array but is of type %s in document {_id: \x00id}", f.Key, value.TypeName(old))
		case "$addToSet":
			return nil, command.Errorf(command.CodeBadValue, "Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", f.Key, value.TypeName(old))
		case "$pop":
			return nil, command.Errorf(command.CodeTypeMismatch, "Path '%s' contains an element of non-array type '%s'", f.Key, value.TypeName(old))
		}
		return nil, command.Errorf(command.CodeBadValue, "Cannot apply %s to a non-array value", op)
	}
	return a, nil
}

func push(f bson.E, opts *Options) (modifier, error) {
	items := bson.A{f.Value}
	var position, limit *int64
	var order any
	if d, ok := f.Value.(bson.D); ok {
		if each, ok := value.Field(d, "$each"); ok {
			list, ok := each.(bson.A)
			if !ok {
				return nil, command.Errorf(command.CodeBadValue, "The argument to $each in $push must be an array but it was of type: %s", value.TypeName(each))
			}
			items = list
			for _, e := range d {
				switch e.Key {
				case "$each":
				case "$position", "$slice":
					n, ok := value.Whole(e.Value)
					if !ok {
						return nil, command.Errorf(command.CodeBadValue, "The value for %s must be an integer value but was given type: %s", e.Key, value.TypeName(e.Value))
					}
					if e.Key == "$slice" {
						limit = &n
					} else {
						position = &n
					}
				case "$sort":
					order = e.Value
				default:
					return nil, command.Errorf(command.CodeBadValue, "Unrecognized clause in $push: %s", e.Key)
				}
			}
		}
	}
	sort, err := sorter(order, opts)
	if err != nil {
		return nil, err
	}
	return func(old any) (any, error) {
		a, err := array(f, "$push", old)
		if err != nil {
			return nil, err
		}
		at := len(a)
		if position != nil {
			at = int(max(min(*position, int64(len(a))), -int64(len(a))))
			if at < 0 {
				at += len(a)
			}
		}
		out := slices.Insert(slices.Clone(a), at, items...)
		if out == nil {
			out = bson.A{}
		}
		sort(out)
		if limit != nil {
			n := int64(len(out))
			if *limit >= 0 {
				out = out[:min(*limit, n)]
			} else {
				out = out[n-min(-*limit, n):]
			}
		}
		return out, nil
	}, nil
}

func sorter(order any, opts *Options) (func(bson.A), error) {
	switch x := order.(type) {
	case nil:
		return func(bson.A) {}, nil
	case bson.D:
		o, err := query.CompileOrder(x, opts.Collation)
		return func(a bson.A) {
			query.Sort(a, o, func(v any) bson.D {
				d, _ := v.(bson.D)
				return d
			})
		}, err
	}
	n, ok := value.Whole(order)
	if !ok || n != 1 && n != -1 {
		return nil, command.Errorf(command.CodeBadValue, "The $sort element value must be either 1 or -1")
	}
	return func(a bson.A) {
		slices.SortStableFunc(a, func(x, y any) int { return opts.Collation.Compare(x, y) * int(n) })
	}, nil
}

func addToSet(f bson.E, opts *Options) (modifier, error) {
	items := bson.A{f.Value}
	if d, ok := f.Value.(bson.D); ok && len(d) > 0 && d[0].Key == "$each" {
		list, ok := d[0].Value.(bson.A)
		if !ok {
			return nil, command.Errorf(command.CodeTypeMismatch, "The argument to $each in $addToSet must be an array but it was of type %s", value.TypeName(d[0].Value))
		}
		items = list
	}
	return func(old any) (any, error) {
		a, err := array(f, "$addToSet", old)
		if err != nil {
			return nil, err
		}
		out := append(bson.A{}, a...)
		for _, item := range items {
			if !slices.ContainsFunc(out, func(v any) bool { return opts.Collation.Compare(v, item) == 0 }) {
				out = append(out, item)
			}
		}
		return out, nil
	}, nil
}

func pop(f bson.E, _ *Options) (modifier, error) {
	n, ok := value.Whole(f.Value)
	if !ok || n != 1 && n != -1 {
		return nil, command.Errorf(command.CodeFailedToParse, "$pop expects 1 or -1, found: %s", value.Text(f.Value))
	}
	return func(old any) (any, error) {
		a, err := array(f, "$pop", old)
		if err != nil || len(a) == 0 {
			return untouched{}, err
		}
		if n == 1 {
			return slices.Clone(a[:len(a)-1]), nil
		}
		return slices.Clone(a[1:]), nil
	}, nil
}

func pull(f bson.E, opts *Options) (modifier, error) {
	test, err := query.Predicate(f.Value, query.Options{Now: opts.Now, Collation: opts.Collation})
	if err != nil {
		return nil, err
	}
	_, documents := f.Value.(bson.D)
	return func(old any) (any, error) {
		a, err := array(f, "$pull", old)
		if err != nil || a == nil {
			return untouched{}, err
		}
		out := bson.A{}
		for _, item := range a {
			if _, nested := item.(bson.A); nested && !documents {
				out = append(out, item)
				continue
			}
			ok, err := test(item)
			if err != nil {
				return nil, err
			}
			if !ok {
				out = append(out, item)
			}
		}
		return out, nil
	}, nil
}

func pullAll(f bson.E, opts *Options) (modifier, error) {
	list, ok := f.Value.(bson.A)
	if !ok {
		return nil, command.Errorf(command.CodeBadValue, "$pullAll requires an array argument but was given a %s", value.TypeName(f.Value))
	}
	return func(old any) (any, error) {
		a, err := array(f, "$pullAll", old)
		if err != nil || a == nil {
			return untouched{}, err
		}
		return slices.DeleteFunc(slices.Clone(a), func(v any) bool {
			return slices.ContainsFunc(list, func(x any) bool { return opts.Collation.Compare(v, x) == 0 })
		}), nil
	}, nil
}

func bit(f bson.E, _ *Options) (modifier, error) {
	d, ok := f.Value.(bson.D)
	if !ok || len(d) == 0 {
		return nil, command.Errorf(command.CodeBadValue, "The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}", value.TypeName(f.Value))
	}
	for _, e := range d {
		if e.Key != "and" && e.Key != "or" && e.Key != "xor" {
			return nil, command.Errorf(command.CodeBadValue, "The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s: %s}", e.Key, e.Key, value.Text(e.Value))
		}
		if _, ok := integer(e.Value); !ok {
			return nil, command.Errorf(command.CodeBadValue, "The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s: %s}", value.TypeName(e.Value), e.Key, value.Text(e.Value))
		}
	}
	return func(old any) (any, error) {
		v := int64(0)
		_, long := old.(int64)
		if !missing(old) {
			var ok bool
			if v, ok = integer(old); !ok {
				return nil, command.Errorf(command.CodeBadValue, "Cannot apply $bit to a value of non-integral type.{_id: \x00id} has the field %s of non-integer type %s", f.Key, value.TypeName(old))
			}
		}
		for _, e := range d {
			n, _ := integer(e.Value)
			_, l := e.Value.(int64)
			long = long || l
			switch e.Key {
			case "and":
				v &= n
			case "or":
				v |= n
			case "xor":
				v ^= n
			}
		}
		if long {
			return v, nil
		}
		return int32(v), nil
	}, nil
}

func integer(v any) (int64, bool) {
	switch v.(type) {
	case int32, int64:
		return value.Whole(v)
	}
	return 0, false
}
