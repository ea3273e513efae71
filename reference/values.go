package reference

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
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

// readConcernOf reads the common option readConcern.
func readConcernOf(v bson.RawValue) (bson.D, error) {
	level := ""
	fields := enginekit.Fields{"level": enginekit.Set(&level, bson.RawValue.StringValueOK)}
	err := fields.Read("readConcern", v, invalidField)
	return addIf(bson.D{}, level != "", "level", level), err
}

// writeConcernOf reads the common option writeConcern, and uses the server's names.
func writeConcernOf(v bson.RawValue) (bson.D, error) {
	var w, journal, timeout any
	value := func(v bson.RawValue) (any, bool) { return v, true }
	err := enginekit.Fields{
		"w": enginekit.Set(&w, func(v bson.RawValue) (any, bool) {
			if n, ok := enginekit.Integer(v); ok {
				return int32(n), n == int64(int32(n))
			}
			return v.StringValueOK()
		}),
		"journal":    enginekit.Set(&journal, value),
		"wtimeoutMS": enginekit.Set(&timeout, value),
	}.Read("writeConcern", v, invalidField)
	out := addIf(bson.D{}, w != nil, "w", w)
	out = addIf(out, journal != nil, "j", journal)
	return addIf(out, timeout != nil, "wtimeout", timeout), err
}

// consistent checks a write concern (Read and Write Concern, "Write Concern"; "Inconsistent WriteConcern"). The error
// is raised by the operation that would use it, not when the entity is created.
func consistent(writeConcern bson.D) *result.Error {
	journal := false
	for _, e := range writeConcern {
		kind, raw, _ := bson.MarshalValue(e.Value)
		v := bson.RawValue{Type: kind, Value: raw}
		if n, ok := enginekit.Integer(v); ok && n < 0 && e.Key != "j" {
			return argument(fmt.Sprintf("the write concern has a negative %s: %d", e.Key, n))
		}
		yes, _ := v.BooleanOK()
		journal = journal || e.Key == "j" && yes
	}
	if journal && unacknowledged(writeConcern) {
		return argument("a write concern cannot have both w: 0 and journal: true")
	}
	return nil
}

// preferenceOf reads the common option readPreference.
func (s scope) preferenceOf(v bson.RawValue) (selection.Preference, error) {
	var p selection.Preference
	err := enginekit.Fields{
		"mode": enginekit.Set(&p.Mode, func(v bson.RawValue) (selection.Mode, bool) {
			mode, ok := v.StringValueOK()
			return s.modeOf(mode), ok
		}),
		"maxStalenessSeconds": enginekit.Point(&p.MaxStalenessSeconds, enginekit.Integer),
		"tagSets":             func(v bson.RawValue) error { return v.Unmarshal(&p.TagSets) },
		"hedge": func(v bson.RawValue) error {
			fields := enginekit.Fields{"enabled": enginekit.Point(&p.Hedge, bson.RawValue.BooleanOK)}
			return fields.Read("hedge", v, invalidField)
		},
	}.Read("readPreference", v, invalidField)
	return p, cmp.Or(err, s.validate(p))
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
	delete(fields, "timeoutMS")
	return fields
}
