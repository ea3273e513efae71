package driver

import (
	"cmp"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/tag"
)

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

// section fills an options struct from a field of a document, if it is present.
func section[T any](doc bson.Raw, field string) (o T, err error) {
	if v := doc.Lookup(field); v.Type != 0 {
		err = fillDocument(&o, field, v)
	}
	return o, err
}
