package query

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Keys returns the keys of a document in an index on some paths, with strings in the form of the collation. A field
// that the document does not have is Missing. Of the arrays along the paths only one may be expanded.
func Keys(doc bson.D, paths [][]string, collation value.Collation) (keys [][]any, err error) {
	k := keyMaker{add: func(fields []keyField) {
		key := make([]any, len(fields))
		for i, f := range fields {
			key[i] = collation.Fold(f.value)
		}
		keys = append(keys, key)
	}}
	fields := make([]keyField, len(paths))
	for i, path := range paths {
		fields[i].rest = path
	}
	k.expand(doc, "", fields)
	return keys, k.Err
}

// keyField is a field of a key while its path is followed.
type keyField struct {
	rest  []string // of the path
	value any      // at the end of the path
	// If the next part of the path is a position in the array that is being expanded, these are the array, the element
	// there, what is at the end of the path, and where.
	array          bson.A
	element, found any
	after          []string
	at             string
}

type keyMaker struct {
	add func([]keyField)
	fault.First
}

// along follows a path through documents, up to an array or the end. It returns what it found, the rest of the path,
// and where it is below a place.
func along(d bson.D, path []string, place string) (v any, rest []string, at string) {
	for {
		v, at, rest = value.Lookup(d, path[0]), place+"."+path[0], path[1:]
		inner, isDocument := v.(bson.D)
		switch {
		case value.Is[bson.A](v) || len(rest) == 0:
			return v, rest, at
		case !isDocument:
			return value.Missing{}, nil, at
		}
		d, path, place = inner, rest, at
	}
}

// expand makes the keys of a document at a place, or of an element of an array that is not a document (nil). It changes
// fields.
func (k *keyMaker) expand(d bson.D, place string, fields []keyField) {
	var array bson.A
	var in []int // the fields whose paths lead through the array
	arrayAt, nested := "", false
	for i := range fields {
		f := &fields[i]
		if len(f.rest) == 0 {
			continue
		}
		v, at, positional := any(value.Missing{}), "", f.array != nil
		_, named := value.Field(d, f.rest[0])
		if named && positional {
			k.Fail(16746, "Ambiguous field name found in array (do not use numeric field names in embedded elements in an "+
				"array), field: '%s' for array: %s", f.rest[0], value.Text(asDocument(f.array)))
		}
		switch {
		case named:
			v, f.rest, at = along(d, f.rest, place)
		case positional:
			v, f.rest, at = f.found, f.after, f.at
		}
		list, isArray := v.(bson.A)
		if !isArray {
			f.value, f.rest = v, nil
			continue
		}
		k.Refuse(in != nil && at != arrayAt, fault.CannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]",
			LastPart(at), LastPart(arrayAt))
		in, array, arrayAt = append(in, i), list, at
		nested = nested || !named && value.Is[bson.A](f.element)
	}
	switch {
	case k.Err != nil:
	case in == nil:
		k.add(fields)
	case len(array) == 0:
		for _, i := range in {
			fields[i].array = nil
		}
		k.element(bson.Undefined{}, arrayAt, array, fields, in, false)
	default:
		for _, i := range in {
			f := &fields[i]
			f.array = nil
			if len(f.rest) == 0 {
				continue
			}
			if position, ok := value.Position(f.rest[0]); ok && position < len(array) {
				f.array, f.element = array, array[position]
				f.found, f.after, f.at = along(asDocument(array), f.rest, arrayAt)
			}
		}
		for i, item := range array {
			k.element(item, fmt.Sprint(arrayAt, ".", i), array, fields, in, nested)
		}
	}
}

// element makes the keys of an element of an array. whole means that paths that end at the array have it as their
// value, not its elements.
func (k *keyMaker) element(item any, place string, array bson.A, fields []keyField, in []int, whole bool) {
	fields = slices.Clone(fields)
	for _, i := range in {
		f := &fields[i]
		if f.value = item; whole {
			f.value = array
		}
	}
	d, _ := item.(bson.D)
	k.expand(d, place, fields)
}

// asDocument returns an array as the document that it is in BSON: its fields are its positions.
func asDocument(a bson.A) bson.D {
	d := make(bson.D, len(a))
	for i, item := range a {
		d[i] = bson.E{Key: fmt.Sprint(i), Value: item}
	}
	return d
}

// LastPart returns the last part of a path.
func LastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
