package store

import (
	"cmp"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Definition returns the options of a view, which name its source and its pipeline, or nil for an ordinary collection.
// A time series collection is a view on its buckets.
func (c *Collection) Definition() bson.D {
	switch {
	case c.IsView():
		return c.Options
	case c.TimeSeries:
		unpack := value.Append(value.Delete(c.Bucketing(), "granularity"), "exclude", bson.A{})
		return value.Doc("viewOn", c.Buckets(), "pipeline", bson.A{value.Doc("$_internalUnpackBucket", unpack)})
	}
	return nil
}

// Buckets returns the name of the collection in which a server keeps the data of a time series collection.
func (c *Collection) Buckets() string { return "system.buckets." + c.Name }

// Bucketing returns the options of a time series collection, with defaults for the missing ones.
func (c *Collection) Bucketing() bson.D {
	given, out := value.As[bson.D](c.Options, "timeseries"), bson.D{}
	for _, key := range []string{"timeField", "metaField"} {
		name, ok := value.Field(given, key)
		out = value.AddIf(out, ok, key, name)
	}
	granularity := cmp.Or(value.As[string](given, "granularity"), "seconds")
	span := map[string]int32{"seconds": 60 * 60, "minutes": 24 * 60 * 60, "hours": 30 * 24 * 60 * 60}[granularity]
	return value.Append(out, "granularity", granularity,
		"bucketMaxSpanSeconds", cmp.Or(value.Get(given, "bucketMaxSpanSeconds"), any(span)))
}

// define replaces the definition of a view in system.views. Either may be nil, or not a view.
func (tx *Tx) define(old, c *Collection) {
	const name = "system.views"
	if old != nil && old.Definition() != nil {
		if defined := tx.store.collection(old.DB, name); defined != nil {
			for _, r := range defined.WithID(old.NS()) {
				defined.swap(r, nil)
			}
		}
	}
	if c == nil || c.Definition() == nil {
		return
	}
	defined := tx.store.collection(c.DB, name)
	if defined == nil {
		defined = NewCollection(c.DB, name, bson.D{})
		tx.store.add(defined)
	}
	defined.swap(nil, defined.newRecord(value.Encode(append(value.Doc("_id", c.NS()), c.Definition()...))))
}
