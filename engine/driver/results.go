package driver

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
)

// result converts the result of a method of the driver to the shape of the format.
func (c *call) result(value any, err error) (any, error) {
	switch r := value.(type) {
	case *mongo.BulkWriteResult:
		c.partial = written(r, err)
		return c.partial, err
	case *mongo.InsertManyResult:
		c.partial = inserted(r, err)
		return c.partial, err
	}
	if err != nil {
		return nil, err
	}
	switch r := value.(type) {
	case *mongo.ChangeStream:
		return c.save(entities.Cursor, &entityCursor{stepper: r, client: c.client})
	case *mongo.Cursor:
		if op, _ := operations.Lookup(c.Row.kind, c.Row.name); op.Result == operations.NewCursor {
			return c.save(entities.Cursor, &entityCursor{stepper: r, client: c.client})
		}
		docs := []bson.Raw{}
		return docs, r.All(c.ctx, &docs)
	case *mongo.SingleResult:
		doc, err := r.Raw()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil, nil
		}
		return doc, err
	case *mongo.InsertOneResult, *mongo.DeleteResult, *mongo.ClientBulkWriteResult:
		return written(r, nil), nil
	case *mongo.UpdateResult:
		if r.UpsertedCount > 0 && r.UpsertedID == nil {
			r.UpsertedID = bson.Null{}
		}
		return written(r, nil), nil
	case mongo.ListDatabasesResult:
		databases := bson.A{}
		for _, d := range r.Databases {
			databases = append(databases, fieldsOf(reflect.ValueOf(d)))
		}
		return databases, nil
	case []string:
		return append([]string{}, r...), nil // an empty list, not null
	}
	return value, nil
}

// written converts the result of writes, nil for a nil pointer. Its fields are valid if the writes were acknowledged.
// With an error, they describe the writes before it.
func written(r any, err error) any {
	s := reflect.ValueOf(r)
	if s.IsNil() {
		return nil
	}
	if s = s.Elem(); err == nil && !s.FieldByName("Acknowledged").Bool() {
		return bson.D{{Key: "acknowledged", Value: false}}
	}
	return fieldsOf(s)
}

// inserted converts the result of insertMany. With an error, the format expects a BulkWriteResult.
func inserted(r *mongo.InsertManyResult, err error) any {
	value := written(r, err)
	d, _ := value.(bson.D)
	if r == nil || d[0].Key == "acknowledged" {
		return value
	}
	d = append(bson.D{{Key: "insertedCount", Value: int64(len(r.InsertedIDs))}}, d...)
	if err != nil {
		d = append(d, fieldsOf(reflect.ValueOf(mongo.BulkWriteResult{}))[1:]...)
	}
	return d
}

// fieldsOf converts a struct of the driver to a document with the format's names, such as upsertedId for UpsertedID.
// Maps and slices become documents by index. Other nil fields are omitted, and so are the results of individual
// writes unless verbose results were requested.
func fieldsOf(s reflect.Value) bson.D {
	verbose := s.FieldByName("HasVerboseResults")
	d := bson.D{}
	for i := range s.NumField() {
		name := s.Type().Field(i).Name
		value := valueOf(s.Field(i))
		switch {
		case name == "Acknowledged", name == "HasVerboseResults", value == nil,
			strings.HasSuffix(name, "Results") && !verbose.Bool():
			continue
		}
		name = strings.Replace(strings.ToLower(name[:1])+name[1:], "ID", "Id", 1)
		d = append(d, bson.E{Key: name, Value: value})
	}
	return d
}

// valueOf converts a field of a result.
func valueOf(v reflect.Value) any {
	d := bson.D{}
	switch v.Kind() {
	case reflect.Struct:
		return fieldsOf(v)
	case reflect.Slice:
		for i := range v.Len() {
			d = append(d, bson.E{Key: strconv.Itoa(i), Value: v.Index(i).Interface()})
		}
		return d
	case reflect.Map:
		byIndex := func(a, b reflect.Value) int { return int(a.Int() - b.Int()) }
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), byIndex) {
			d = append(d, bson.E{Key: strconv.FormatInt(k.Int(), 10), Value: valueOf(v.MapIndex(k))})
		}
		return d
	}
	return v.Interface()
}
