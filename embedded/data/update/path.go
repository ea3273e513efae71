package update

import (
	"strconv"
	"strings"

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

// removed is what a modifier returns to take a field away; untouched what it
// returns to leave things as they are.
type (
	removed   struct{}
	untouched struct{}
)

// change applies a step at a path, changing v in place where it can: v is a
// private copy.
func change(v any, parts []string, at int, s step) (any, error) {
	if at == len(parts) {
		return s.do(v)
	}
	part := parts[at]
	switch x := v.(type) {
	case bson.D:
		for i := range x {
			if x[i].Key != part {
				continue
			}
			r, err := change(x[i].Value, parts, at+1, s)
			if err != nil {
				return nil, locate(err, x, at == 0)
			}
			switch r.(type) {
			case removed:
				return value.Delete(x, part), nil
			case untouched:
			default:
				x[i].Value = r
			}
			return x, nil
		}
		r, err := create(parts, at+1, s)
		if err != nil {
			return nil, err
		}
		switch r.(type) {
		case removed, untouched:
			return x, nil
		}
		return append(x, bson.E{Key: part, Value: r}), nil
	case bson.A:
		i, ok := position(part)
		if !ok {
			if s.op == "$unset" || s.op == "$pull" || s.op == "$pop" || s.op == "$pullAll" {
				return v, nil
			}
			return nil, notViable(part, parts[at-1], v)
		}
		if i < len(x) {
			r, err := change(x[i], parts, at+1, s)
			if err != nil {
				return nil, err
			}
			switch r.(type) {
			case removed:
				x[i] = nil // an unset element leaves its place
			case untouched:
			default:
				x[i] = r
			}
			return x, nil
		}
		r, err := create(parts, at+1, s)
		if err != nil {
			return nil, err
		}
		switch r.(type) {
		case removed, untouched:
			return x, nil
		}
		if i-len(x) > maxPad {
			return nil, command.Errorf(command.CodeCannotBackfillArray, "can't backfill more than %d elements", maxPad)
		}
		for len(x) < i {
			x = append(x, nil)
		}
		return append(x, r), nil
	}
	if s.op == "$unset" || s.op == "$pull" || s.op == "$pop" || s.op == "$pullAll" {
		return v, nil
	}
	name := ""
	if at > 0 {
		name = parts[at-1]
	}
	return nil, notViable(part, name, v)
}

func notViable(part, name string, v any) error {
	return command.Errorf(command.CodePathNotViable, "Cannot create field '%s' in element {%s: %s}", part, name, value.Text(v))
}

// create makes the rest of a path that is not there.
func create(parts []string, at int, s step) (any, error) {
	r, err := s.do(value.Missing{})
	if err != nil {
		return nil, err
	}
	switch r.(type) {
	case removed, untouched:
		return r, nil
	}
	for i := len(parts) - 1; i >= at; i-- {
		r = bson.D{{Key: parts[i], Value: r}}
	}
	return r, nil
}

// locate completes the message of a type error, which names the document.
func locate(err error, doc bson.D, top bool) error {
	e, ok := err.(*command.Error)
	if !ok {
		return err
	}
	id, has := value.Field(doc, "_id")
	if !has && !top {
		return err
	}
	c := *e
	c.Message = strings.ReplaceAll(c.Message, "\x00id", value.Text(id))
	return &c
}

func rename(doc bson.D, from, to string) (bson.D, error) {
	var v any = doc
	for _, p := range strings.Split(from, ".") {
		if _, ok := v.(bson.A); ok {
			return nil, command.Errorf(command.CodeBadValue, "The source field cannot be an array element, '%s' in doc has an array field called '%s'", from, p)
		}
		v = child(v, p)
	}
	if (v == any(value.Missing{})) {
		return doc, nil
	}
	gone, err := change(doc, strings.Split(from, "."), 0, step{op: "$unset", path: from, do: func(any) (any, error) { return removed{}, nil }})
	if err != nil {
		return nil, err
	}
	out, err := change(gone, strings.Split(to, "."), 0, step{op: "$set", path: to, do: func(any) (any, error) { return v, nil }})
	if err != nil {
		return nil, err
	}
	return out.(bson.D), nil
}
