package reference

import (
	"errors"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// document returns a document with keys and values in turn.
func document(pairs ...any) bson.D {
	d := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return d
}

// addIf appends a field to a document if a condition holds.
func addIf(d bson.D, holds bool, key string, value any) bson.D {
	if holds {
		d = append(d, bson.E{Key: key, Value: value})
	}
	return d
}

// invalidField is the error for an unknown field of a common option.
func invalidField(field string) error { return errors.New(field + " is not valid") }

// unsupportedField is the error for a field that the engine does not support.
func unsupportedField(field string) error { return unsupported(field) }

// collect returns a function that appends a field to a document under a name.
func collect[T any](to *bson.D, name string, read func(bson.RawValue) (T, bool)) func(bson.RawValue) error {
	return func(v bson.RawValue) error {
		value, ok := read(v)
		if !ok {
			return enginekit.ErrType
		}
		*to = append(*to, bson.E{Key: name, Value: value})
		return nil
	}
}

// readConcernOf reads the common option readConcern.
func readConcernOf(v bson.RawValue) (bson.D, error) {
	out := bson.D{}
	err := enginekit.Fields{"level": collect(&out, "level", bson.RawValue.StringValueOK)}.Read("readConcern", v, invalidField)
	return out, err
}

// writeConcernOf reads the common option writeConcern, and uses the server's names.
func writeConcernOf(v bson.RawValue) (bson.D, error) {
	out := bson.D{}
	as := func(v bson.RawValue) (bson.RawValue, bool) { return v, true }
	err := enginekit.Fields{
		"w": collect(&out, "w", func(v bson.RawValue) (any, bool) {
			if n, ok := enginekit.Integer(v); ok {
				return int32(n), true
			}
			return v.StringValueOK()
		}),
		"journal":    collect(&out, "j", as),
		"wtimeoutMS": collect(&out, "wtimeout", as),
	}.Read("writeConcern", v, invalidField)
	return out, err
}

// preferenceOf reads the common option readPreference.
func preferenceOf(v bson.RawValue) (selection.Preference, error) {
	var p selection.Preference
	err := enginekit.Fields{
		"mode": enginekit.Set(&p.Mode, func(v bson.RawValue) (selection.Mode, bool) {
			mode, ok := v.StringValueOK()
			return selection.ModeOf(mode), ok
		}),
		"maxStalenessSeconds": enginekit.Point(&p.MaxStalenessSeconds, enginekit.Integer),
		"tagSets":             func(v bson.RawValue) error { return v.Unmarshal(&p.TagSets) },
		"hedge": func(v bson.RawValue) error {
			hedge, ok := v.DocumentOK()
			if !ok {
				return enginekit.ErrType
			}
			if on, ok := hedge.Lookup("enabled").BooleanOK(); ok {
				p.Hedge = &on
			}
			return nil
		},
	}.Read("readPreference", v, invalidField)
	if err != nil {
		return p, err
	}
	return p, p.Validate()
}

// timeoutOf reads a timeoutMS.
func timeoutOf(v bson.RawValue) (*time.Duration, error) {
	n, ok := enginekit.Integer(v)
	if !ok || n < 0 {
		return nil, errors.New("timeoutMS is not a number of milliseconds")
	}
	d := time.Duration(n) * time.Millisecond
	return &d, nil
}

func (o *transactionOptions) fields() enginekit.Fields {
	fields := o.scope.fields()
	fields["maxCommitTimeMS"] = enginekit.Point(&o.maxCommitTime, enginekit.Integer)
	return fields
}
