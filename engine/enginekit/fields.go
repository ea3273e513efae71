package enginekit

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// ErrType means that an option does not accept the type of a value.
var ErrType = errors.New("invalid type or value")

// Fields maps the fields of a document to functions that read them.
type Fields map[string]func(bson.RawValue) error

// Read reads the fields of a document. unknown returns the error for a field
// without a function; what is the name of the document in errors.
func (f Fields) Read(what string, v bson.RawValue, unknown func(field string) error) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return fmt.Errorf("%s: %w", what, ErrType)
	}
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, e := range elements {
		read := f[e.Key()]
		if read == nil {
			return unknown(what + "." + e.Key())
		}
		if err := read(e.Value()); err != nil {
			return fmt.Errorf("%s.%s: %w", what, e.Key(), err)
		}
	}
	return nil
}

// Set returns a function that reads a field into a variable.
func Set[T any](p *T, read func(bson.RawValue) (T, bool)) func(bson.RawValue) error {
	return func(v bson.RawValue) error {
		value, ok := read(v)
		if !ok {
			return ErrType
		}
		*p = value
		return nil
	}
}

// Point returns a function that reads a field into a new variable.
func Point[T any](p **T, read func(bson.RawValue) (T, bool)) func(bson.RawValue) error {
	return func(v bson.RawValue) error {
		*p = new(T)
		return Set(*p, read)(v)
	}
}

// SetErr is Set for a function that returns an error.
func SetErr[T any](p *T, read func(bson.RawValue) (T, error)) func(bson.RawValue) error {
	return func(v bson.RawValue) (err error) {
		*p, err = read(v)
		return err
	}
}

// DriverInfo reads DriverInfoOptions.
func DriverInfo(v bson.RawValue, unknown func(field string) error) (options.DriverInfo, error) {
	var info options.DriverInfo
	err := Fields{
		"name":     Set(&info.Name, bson.RawValue.StringValueOK),
		"version":  Set(&info.Version, bson.RawValue.StringValueOK),
		"platform": Set(&info.Platform, bson.RawValue.StringValueOK),
	}.Read("driverInfoOptions", v, unknown)
	return info, err
}

// ServerAPI reads the serverApi of a client.
func ServerAPI(v bson.RawValue, unknown func(field string) error) (*options.ServerAPIOptions, error) {
	var o options.ServerAPIOptions
	return &o, Fields{
		"version": Set(&o.ServerAPIVersion, func(v bson.RawValue) (options.ServerAPIVersion, bool) {
			s, ok := v.StringValueOK()
			return options.ServerAPIVersion(s), ok
		}),
		"strict":            Point(&o.Strict, bson.RawValue.BooleanOK),
		"deprecationErrors": Point(&o.DeprecationErrors, bson.RawValue.BooleanOK),
	}.Read("serverApi", v, unknown)
}
