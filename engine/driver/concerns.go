package driver

import (
	"reflect"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/tag"
)

// Common options (Unified Test Format, "Common Options").

func readConcernOf(v bson.RawValue) (*readconcern.ReadConcern, error) {
	var c readconcern.ReadConcern
	return &c, enginekit.Fields{"level": enginekit.Set(&c.Level, bson.RawValue.StringValueOK)}.Read("readConcern", v, lacking)
}

// writeConcernOf: the driver has no wtimeout.
func writeConcernOf(v bson.RawValue) (*writeconcern.WriteConcern, error) {
	var c writeconcern.WriteConcern
	return &c, enginekit.Fields{
		"journal": enginekit.Point(&c.Journal, bson.RawValue.BooleanOK),
		"w": enginekit.Set(&c.W, func(v bson.RawValue) (any, bool) {
			if n, ok := whole[int](v); ok {
				return n, true
			}
			return v.StringValueOK()
		}),
	}.Read("writeConcern", v, lacking)
}

func preferenceOf(v bson.RawValue) (*readpref.ReadPref, error) {
	mode := readpref.PrimaryMode
	var o []readpref.Option
	err := enginekit.Fields{
		"mode": func(v bson.RawValue) (err error) {
			name, ok := v.StringValueOK()
			if !ok {
				return enginekit.ErrType
			}
			mode, err = readpref.ModeFromString(name)
			return err
		},
		"maxStalenessSeconds": func(v bson.RawValue) error {
			n, ok := enginekit.Integer(v)
			if !ok {
				return enginekit.ErrType
			}
			if n >= 0 { // -1 is none at all
				o = append(o, readpref.WithMaxStaleness(time.Duration(n)*time.Second))
			}
			return nil
		},
		"tagSets": func(v bson.RawValue) error {
			var maps []map[string]string
			if err := v.Unmarshal(&maps); err != nil {
				return err
			}
			o = append(o, readpref.WithTagSets(tag.NewTagSetsFromMaps(maps)...))
			return nil
		},
	}.Read("readPreference", v, lacking)
	if err != nil {
		return nil, err
	}
	return readpref.New(mode, o...)
}

// lacking is the error of a field that the driver does not have.
func lacking(field string) error { return unsupported(field) }

// filled hands an options struct to the driver.
type filled[T any] struct{ options T }

// given makes the pointer that the driver requires.
func given[T any](o T) *filled[T] { return &filled[T]{o} }

// List implements options.Lister. What is not set keeps the driver's default.
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

// section fills an options struct from the field of a document that has its name,
// if it is there.
func section[T any](doc bson.Raw, field string) (o T, err error) {
	if v := doc.Lookup(field); v.Type != 0 {
		err = fillDocument(&o, field, v)
	}
	return o, err
}
