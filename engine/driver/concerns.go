package driver

import (
	"errors"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
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

// lister hands a filled options struct to the driver, which requires a pointer.
type lister[T any] struct{ fill func(*T) error }

// List implements options.Lister.
func (l *lister[T]) List() []func(*T) error { return []func(*T) error{l.fill} }

// given hands over a struct that is filled already.
func given[T any](o T) *lister[T] {
	return &lister[T]{func(to *T) error { *to = o; return nil }}
}

// filled gives options as a document says them.
func filled[T any](what string, doc bson.Raw) options.Lister[T] {
	return &lister[T]{func(o *T) error { return fill(o, what, doc) }}
}

// checked gives options, after making sure that they can be had.
func checked[T any](what string, v bson.RawValue) (options.Lister[T], error) {
	if v.Type == 0 {
		return &lister[T]{func(*T) error { return nil }}, nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, errors.New(what + " is not a document")
	}
	return filled[T](what, doc), fill(new(T), what, doc)
}
