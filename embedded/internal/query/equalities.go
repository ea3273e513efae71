package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Inserted returns the document that an upsert begins with: the fields for which the filter requires a value, or only
// _id for a replacement.
func (f *Filter) Inserted(replaces bool) (bson.D, error) {
	list, _ := equalities(f.source)
	slices.SortStableFunc(list, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	out := bson.D{}
	for i, e := range list {
		if replaces && e.Key != "_id" && !strings.HasPrefix(e.Key, "_id.") {
			continue
		}
		if replaces && e.Key != "_id" {
			return nil, fault.Errorf(fault.NotExactValueField,
				"field at '_id' must be exactly specified, field at sub-path '%s'found", e.Key)
		}
		for _, other := range list[:i] {
			switch {
			case e.Key == other.Key:
				return nil, fault.Errorf(fault.NotSingleValueField, "cannot infer query fields to set, path '%s' is matched twice",
					e.Key)
			case strings.HasPrefix(e.Key, other.Key+"."):
				return nil, fault.Errorf(fault.NotSingleValueField,
					"cannot infer query fields to set, both paths '%s' and '%s' are matched", e.Key, other.Key)
			}
		}
		out = value.Put(out, strings.Split(e.Key, "."), e.Value).(bson.D)
	}
	return out, nil
}

// equalities returns the conditions of a filter that require a field to equal a value. A list of one condition or value
// stands for it. never reports that no document can match; then nothing is required.
func equalities(filter bson.D) (out bson.D, never bool) {
	for _, e := range filter {
		var required bson.D
		var impossible bool
		list, _ := e.Value.(bson.A)
		switch {
		case e.Key == "$and" || e.Key == "$or":
			possible := 0
			for _, item := range list {
				d, _ := item.(bson.D)
				inner, empty := equalities(d)
				if impossible = impossible || empty; !empty {
					possible++
					required = append(required, inner...)
				}
			}
			if e.Key == "$or" {
				impossible = possible == 0
			}
			if e.Key == "$or" && possible > 1 {
				required = nil
			}
		case !strings.HasPrefix(e.Key, "$"):
			required, impossible = equalTo(e.Key, e.Value)
		}
		if impossible {
			return nil, true
		}
		out = append(out, required...)
	}
	return out, false
}

// equalTo returns what a condition on a field requires it to equal.
func equalTo(path string, condition any) (out bson.D, never bool) {
	d, _ := condition.(bson.D)
	if !IsOperators(d) {
		return value.AddIf(nil, !value.Is[bson.Regex](condition), path, condition), false
	}
	for _, op := range d {
		list, _ := op.Value.(bson.A)
		switch op.Key {
		case "$eq":
			list = bson.A{op.Value}
		case "$in":
			if list = slices.CompactFunc(slices.Clone(list), value.Equal); len(list) > 1 {
				continue
			}
		case "$all":
		default:
			continue
		}
		if len(list) == 0 {
			return nil, true
		}
		for _, v := range list {
			inner, _ := v.(bson.D)
			out = value.AddIf(out, op.Key == "$eq" || !value.Is[bson.Regex](v) && !IsOperators(inner), path, v)
		}
	}
	return out, false
}
