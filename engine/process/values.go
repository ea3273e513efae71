package process

import (
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// document is a BSON document, in canonical Extended JSON.
type document bson.Raw

// MarshalJSON writes canonical Extended JSON.
func (d document) MarshalJSON() ([]byte, error) { return bson.MarshalExtJSON(bson.Raw(d), true, false) }

// UnmarshalJSON reads canonical or relaxed Extended JSON.
func (d *document) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return fmt.Errorf("null is not a document")
	}
	return bson.UnmarshalExtJSON(data, false, (*bson.Raw)(d))
}

// value is any BSON value. Its type is 0 if it is absent.
type value bson.RawValue

// IsZero makes omitzero omit an absent value.
func (v value) IsZero() bool { return v.Type == 0 }

// MarshalJSON writes canonical Extended JSON.
func (v value) MarshalJSON() ([]byte, error) {
	data, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: bson.RawValue(v)}}, true, false)
	if err != nil {
		return nil, err
	}
	return data[len(`{"v":`) : len(data)-1], nil
}

// UnmarshalJSON reads canonical or relaxed Extended JSON.
func (v *value) UnmarshalJSON(data []byte) error {
	wrapped, err := json.Marshal(map[string]json.RawMessage{"v": data})
	if err != nil {
		return err
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON(wrapped, false, &raw); err != nil {
		return err
	}
	*v = value(raw.Lookup("v"))
	return nil
}
