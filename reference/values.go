package reference

import (
	"errors"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// readConcernOf reads the common option readConcern.
func readConcernOf(v bson.RawValue) (bson.D, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, errors.New("readConcern is no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	out := bson.D{}
	for _, e := range elements {
		level, ok := e.Value().StringValueOK()
		if e.Key() != "level" || !ok {
			return nil, fmt.Errorf("readConcern.%s is not valid", e.Key())
		}
		out = append(out, bson.E{Key: "level", Value: level})
	}
	return out, nil
}

// writeConcernOf reads the common option writeConcern, in the server's names.
func writeConcernOf(v bson.RawValue) (bson.D, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, errors.New("writeConcern is no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	out := bson.D{}
	for _, e := range elements {
		switch n, isNumber := enginekit.Integer(e.Value()); e.Key() {
		case "w":
			if isNumber {
				out = append(out, bson.E{Key: "w", Value: int32(n)})
			} else if s, ok := e.Value().StringValueOK(); ok {
				out = append(out, bson.E{Key: "w", Value: s})
			} else {
				return nil, errors.New("writeConcern.w is neither a number nor a string")
			}
		case "journal":
			out = append(out, bson.E{Key: "j", Value: e.Value()})
		case "wtimeoutMS":
			out = append(out, bson.E{Key: "wtimeout", Value: e.Value()})
		default:
			return nil, fmt.Errorf("writeConcern.%s is not valid", e.Key())
		}
	}
	return out, nil
}

// preferenceOf reads the common option readPreference.
func preferenceOf(v bson.RawValue) (selection.Preference, error) {
	var p selection.Preference
	doc, ok := v.DocumentOK()
	if !ok {
		return p, errors.New("readPreference is no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return p, err
	}
	for _, e := range elements {
		switch e.Key() {
		case "mode":
			mode, ok := e.Value().StringValueOK()
			if !ok {
				return p, errors.New("readPreference.mode is no string")
			}
			p.Mode = modeOf(mode)
		case "maxStalenessSeconds":
			n, ok := enginekit.Integer(e.Value())
			if !ok {
				return p, errors.New("readPreference.maxStalenessSeconds is no whole number")
			}
			p.MaxStalenessSeconds = &n
		case "tagSets":
			if err := bson.UnmarshalValue(e.Value().Type, e.Value().Value, &p.TagSets); err != nil {
				return p, fmt.Errorf("readPreference.tagSets: %w", err)
			}
		case "hedge":
			hedge, ok := e.Value().DocumentOK()
			if !ok {
				return p, errors.New("readPreference.hedge is no document")
			}
			if on, ok := hedge.Lookup("enabled").BooleanOK(); ok {
				p.Hedge = &on
			}
		default:
			return p, fmt.Errorf("readPreference.%s is not valid", e.Key())
		}
	}
	return p, p.Validate()
}

// modeOf accepts any case of a mode's first letter, as suites have both.
func modeOf(s string) selection.Mode {
	if s != "" && s[0] >= 'A' && s[0] <= 'Z' {
		s = string(s[0]+'a'-'A') + s[1:]
	}
	return selection.Mode(s)
}

// timeoutOf reads a timeoutMS.
func timeoutOf(v bson.RawValue) (*time.Duration, error) {
	n, ok := enginekit.Integer(v)
	if !ok || n < 0 {
		return nil, errors.New("timeoutMS is no number of milliseconds")
	}
	d := time.Duration(n) * time.Millisecond
	return &d, nil
}

// transactionOptionsOf reads transaction options.
func transactionOptionsOf(v bson.RawValue) (transactionOptions, error) {
	var o transactionOptions
	doc, ok := v.DocumentOK()
	if !ok {
		return o, errors.New("transaction options are no document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return o, err
	}
	for _, e := range elements {
		switch e.Key() {
		case "readConcern":
			o.readConcern, err = readConcernOf(e.Value())
		case "writeConcern":
			o.writeConcern, err = writeConcernOf(e.Value())
		case "readPreference":
			var p selection.Preference
			p, err = preferenceOf(e.Value())
			o.preference = &p
		case "maxCommitTimeMS":
			n, ok := enginekit.Integer(e.Value())
			if !ok {
				return o, errors.New("maxCommitTimeMS is no whole number")
			}
			o.maxCommitTime = &n
		case "timeoutMS":
			o.timeout, err = timeoutOf(e.Value())
		default:
			err = unsupported("transaction option " + e.Key())
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}
