package store

import (
	"cmp"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Place returns an error if a document has a point outside the range of a 2d index, or an array in a hashed one. No
// query uses such an index.
func (x *Index) Place(doc bson.D) error {
	for _, k := range x.Key {
		if k.Value != "2d" && k.Value != "hashed" {
			continue
		}
		at := value.At(doc, strings.Split(k.Key, "."))
		if err := x.place(at); k.Value == "2d" && err != nil {
			return err
		}
		if _, isArray := at.(bson.A); isArray && k.Value == "hashed" {
			return fault.Errorf(16766, "hashed indexes do not currently support array values. Found array at path: %s", k.Key)
		}
	}
	return nil
}

// place checks one point, an array or a document of two numbers, or an array of points.
func (x *Index) place(at any) error {
	var point []any
	switch v := at.(type) {
	case bson.A:
		point = v
	case bson.D:
		for _, e := range v {
			point = append(point, e.Value)
		}
	}
	least := value.Float(cmp.Or(value.Get(x.Spec, "min"), any(-180.0)))
	most := value.Float(cmp.Or(value.Get(x.Spec, "max"), any(180.0)))
	for _, v := range point {
		switch {
		case !value.IsNumber(v):
			if err := x.place(v); err != nil {
				return err
			}
		case value.Float(v) < least || value.Float(v) > most:
			return fault.Errorf(fault.PointOutOfRange, "point not in interval of [ %v, %v ] :: caused by :: %s", least, most,
				value.Text(at))
		}
	}
	return nil
}
