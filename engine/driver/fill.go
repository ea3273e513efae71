package driver

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/tag"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
)

// fieldNames maps arguments of the format to fields of the driver's options whose
// names differ. The first field that a struct has is used.
var fieldNames = map[string][]string{
	"2dsphereIndexVersion":  {"SphereVersion"},
	"bucketMaxSpanSeconds":  {"BucketMaxSpan"},
	"bucketName":            {"Name"},
	"bucketRoundingSeconds": {"BucketRounding"},
	"default_language":      {"DefaultLanguage"},
	"language_override":     {"LanguageOverride"},
	"max":                   {"Max", "MaxDocuments"},
	"maxAwaitTimeMS":        {"MaxAwaitTime"},
	"showRecordId":          {"ShowRecordID"},
	"size":                  {"SizeInBytes"},
	"textIndexVersion":      {"TextVersion"},
}

// fieldOf finds the field of an options struct for an argument.
func fieldOf(t reflect.Type, argument string) (reflect.StructField, bool) {
	names := fieldNames[argument]
	if names == nil && argument != "" {
		names = []string{strings.ToUpper(argument[:1]) + argument[1:]}
	}
	for _, name := range names {
		if f, found := t.FieldByName(name); found && f.IsExported() {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// fill sets the fields of the struct at p from the elements of a document. An element without a field is Unsupported.
func fill(p any, what string, doc bson.Raw) error {
	elements, err := doc.Elements()
	if err != nil {
		return err
	}
	s := reflect.ValueOf(p).Elem()
	for _, e := range elements {
		f, found := fieldOf(s.Type(), e.Key())
		if !found {
			return unsupported(what + "." + e.Key())
		}
		if err := assign(s.FieldByIndex(f.Index), e.Value()); err != nil {
			return fmt.Errorf("%s: %w", e.Key(), err)
		}
	}
	return nil
}

// assign sets a field of an options struct.
func assign(field reflect.Value, v bson.RawValue) (err error) {
	p := field.Addr().Interface()
	if read := scalar(p); read != nil {
		return read(v)
	}
	switch p := p.(type) {
	case *any:
		*p, err = plain(v)
	case *[]any:
		array, ok := v.ArrayOK()
		if !ok {
			return enginekit.ErrType
		}
		*p, err = plainAll(array)
	case *options.Collation:
		err = fillDocument(p, "collation", v)
	case **options.TransactionOptionsBuilder:
		var o options.TransactionOptions
		err = fillDocument(&o, "defaultTransactionOptions", v)
		*p = &options.TransactionOptionsBuilder{Opts: given(o).List()}
	case *[]map[string]string:
		err = v.Unmarshal(p)
	case *readconcern.ReadConcern:
		err = fillDocument(p, "readConcern", v)
	case *writeconcern.WriteConcern: // it has no wtimeout
		err = fillDocument(p, "writeConcern", v)
		if n, ok := p.W.(int32); ok {
			p.W = int(n) // the driver accepts no other numeric type
		}
	case **readpref.ReadPref:
		*p, err = preferenceOf(v)
	default:
		if field.Kind() != reflect.Pointer {
			return fmt.Errorf("%s: %w", field.Type(), errNoFill)
		}
		field.Set(reflect.New(field.Type().Elem()))
		err = assign(field.Elem(), v)
	}
	return err
}

// scalar returns the function that reads a value into p, or nil if p does not point to a scalar.
func scalar(p any) func(bson.RawValue) error {
	switch p := p.(type) {
	case *bool:
		return enginekit.Set(p, bson.RawValue.BooleanOK)
	case *string:
		return enginekit.Set(p, bson.RawValue.StringValueOK)
	case *int32:
		return enginekit.Set(p, whole[int32])
	case *int:
		return enginekit.Set(p, whole[int])
	case *int64:
		return enginekit.Set(p, whole[int64])
	case *float64:
		return enginekit.Set(p, float)
	case *time.Duration:
		return enginekit.Set(p, milliseconds)
	case *bson.Timestamp:
		return enginekit.Set(p, func(v bson.RawValue) (at bson.Timestamp, ok bool) {
			at.T, at.I, ok = v.TimestampOK()
			return at, ok
		})
	case *options.CursorType:
		return enginekit.Set(p, wordOf(map[string]options.CursorType{"nontailable": options.NonTailable,
			"tailable": options.Tailable, "tailableawait": options.TailableAwait}))
	case *options.ReturnDocument:
		return enginekit.Set(p, wordOf(map[string]options.ReturnDocument{"before": options.Before, "after": options.After}))
	case *options.FullDocument:
		return enginekit.Set((*string)(p), bson.RawValue.StringValueOK)
	}
	return nil
}

// fillable reports whether assign supports the type of a field.
func fillable(t reflect.Type) bool {
	return !errors.Is(assign(reflect.New(t).Elem(), bson.RawValue{Type: bson.TypeNull}), errNoFill)
}

// errNoFill means that assign does not support the type of a field.
var errNoFill = errors.New("unsupported type of option")

func fillDocument(p any, what string, v bson.RawValue) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return enginekit.ErrType
	}
	return fill(p, what, doc)
}

// wordOf reads one of several words, ignoring case.
func wordOf[T any](words map[string]T) func(bson.RawValue) (T, bool) {
	return func(v bson.RawValue) (T, bool) {
		word, _ := v.StringValueOK()
		value, ok := words[strings.ToLower(word)]
		return value, ok
	}
}

func whole[T int | int32 | int64](v bson.RawValue) (T, bool) {
	n, ok := enginekit.Integer(v)
	return T(n), ok && int64(T(n)) == n
}

func float(v bson.RawValue) (float64, bool) {
	if d, ok := v.DoubleOK(); ok {
		return d, true
	}
	n, ok := enginekit.Integer(v)
	return float64(n), ok
}

func milliseconds(v bson.RawValue) (time.Duration, bool) {
	n, ok := enginekit.Integer(v)
	return time.Duration(n) * time.Millisecond, ok
}

// plain converts a value for a parameter of the driver of type any. Documents stay
// raw, so that they are sent unchanged.
func plain(v bson.RawValue) (any, error) {
	if doc, ok := v.DocumentOK(); ok {
		return doc, nil
	}
	if array, ok := v.ArrayOK(); ok {
		values, err := array.Values()
		if err != nil {
			return nil, err
		}
		docs := make([]bson.Raw, len(values))
		for i, v := range values {
			if docs[i], ok = v.DocumentOK(); !ok {
				return plainAll(array)
			}
		}
		return docs, nil // a type that the driver accepts as a pipeline
	}
	var out any
	err := v.Unmarshal(&out)
	return out, err
}

func plainAll(array bson.RawArray) ([]any, error) {
	values, err := array.Values()
	if err != nil {
		return nil, err
	}
	return each(values, plain)
}

// each converts a list. It stops at the first error.
func each[A, B any](list []A, convert func(A) (B, error)) ([]B, error) {
	out := make([]B, len(list))
	for i, one := range list {
		var err error
		if out[i], err = convert(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// unsupported returns the error for something that the driver does not have.
func unsupported(what string) *result.Error {
	return &result.Error{Message: "the driver does not have " + what, Client: true, Kind: "unsupported", Unsupported: what}
}

// preferenceOf converts a read preference. The driver's type has no exported fields.
func preferenceOf(v bson.RawValue) (*readpref.ReadPref, error) {
	var p struct {
		Mode                string
		MaxStalenessSeconds *int64
		TagSets             []map[string]string
	}
	if err := fillDocument(&p, "readPreference", v); err != nil {
		return nil, err
	}
	mode, err := readpref.ModeFromString(cmp.Or(p.Mode, "primary"))
	if err != nil {
		return nil, err
	}
	var o []readpref.Option
	if p.MaxStalenessSeconds != nil && *p.MaxStalenessSeconds >= 0 { // -1 means no limit
		o = append(o, readpref.WithMaxStaleness(time.Duration(*p.MaxStalenessSeconds)*time.Second))
	}
	if p.TagSets != nil {
		o = append(o, readpref.WithTagSets(tag.NewTagSetsFromMaps(p.TagSets)...))
	}
	return readpref.New(mode, o...)
}

// lacking is unsupported as a function that returns an error.
func lacking(field string) error { return unsupported(field) }

// filled is an options struct as an options.Lister of the driver.
type filled[T any] struct{ options T }

func given[T any](o T) *filled[T] { return &filled[T]{o} }

// List implements options.Lister. Unset fields keep the driver's default.
func (f *filled[T]) List() []func(*T) error {
	return []func(*T) error{func(to *T) error {
		from, into := reflect.ValueOf(&f.options).Elem(), reflect.ValueOf(to).Elem()
		for i := range from.NumField() {
			if !from.Field(i).IsZero() && into.Field(i).CanSet() {
				into.Field(i).Set(from.Field(i))
			}
		}
		return nil
	}}
}

// setters fills an options struct and returns it as the Opts of a builder of the driver.
func setters[T any](what string, doc bson.Raw) ([]func(*T) error, error) {
	var o T
	err := fill(&o, what, doc)
	return given(o).List(), err
}

// section fills an options struct from a field of a document, if it is present.
func section[T any](doc bson.Raw, field string) (o T, err error) {
	if v := doc.Lookup(field); v.Type != 0 {
		err = fillDocument(&o, field, v)
	}
	return o, err
}
