package result

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Duration is a duration whose JSON form is in milliseconds, rounded down to microseconds.
type Duration time.Duration

// IsZero makes omitzero omit a duration that is written as 0.
func (d Duration) IsZero() bool { return time.Duration(d).Microseconds() == 0 }

// Milliseconds returns the JSON form.
func (d Duration) Milliseconds() float64 { return float64(time.Duration(d).Microseconds()) / 1000 }

// MarshalJSON writes the duration as encoding/json writes Milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(make([]byte, 0, 16), d.Milliseconds(), 'f', -1, 64), nil
}

// UnmarshalJSON undoes MarshalJSON.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var ms float64
	err := json.Unmarshal(text, &ms)
	*d = Duration(math.Round(ms*1000)) * Duration(time.Microsecond)
	return err
}

// Document is a BSON document whose JSON form is relaxed Extended JSON.
type Document bson.Raw

// Lookup returns the value of a path of keys, the zero value if it does not exist.
func (d Document) Lookup(key ...string) bson.RawValue { return bson.Raw(d).Lookup(key...) }

// String returns canonical Extended JSON.
func (d Document) String() string { return bson.Raw(d).String() }

// MarshalJSON writes null for an empty document. It writes an error for invalid BSON as a string.
func (d Document) MarshalJSON() ([]byte, error) {
	if len(d) == 0 {
		return []byte("null"), nil
	}
	text, err := bson.MarshalExtJSON(bson.Raw(d), false, false)
	if err != nil {
		return json.Marshal(fmt.Sprintf("not a BSON document: %v", err))
	}
	return text, nil
}

// UnmarshalJSON undoes MarshalJSON. It reads anything but a document as nil.
func (d *Document) UnmarshalJSON(text []byte) error {
	if bson.UnmarshalExtJSON(text, false, (*bson.Raw)(d)) != nil {
		*d = nil
	}
	return nil
}

// Value is a BSON value whose JSON form is relaxed Extended JSON. The zero Value, of type 0, is absent.
type Value struct{ bson.RawValue }

// IsZero makes omitzero omit an absent value.
func (v Value) IsZero() bool { return v.Type == 0 }

// MarshalJSON writes an error for invalid BSON as a string.
func (v Value) MarshalJSON() ([]byte, error) {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v.RawValue}}, false, false)
	if err != nil {
		return json.Marshal(fmt.Sprintf("not a BSON value: %v", err))
	}
	return text[len(`{"v":`) : len(text)-len("}")], nil
}

// UnmarshalJSON undoes MarshalJSON.
func (v *Value) UnmarshalJSON(text []byte) error {
	var d Document
	err := d.UnmarshalJSON(slices.Concat([]byte(`{"v":`), text, []byte("}")))
	v.RawValue = d.Lookup("v")
	return err
}
