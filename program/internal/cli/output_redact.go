package cli

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/result"
)

type redactor struct{ *secret.Keeper }

func (r redactor) note(n result.Note) result.Note {
	return r.value(reflect.ValueOf(n)).Interface().(result.Note)
}

func (r redactor) texts(all []string) []string { return mapSlice(all, r.Redact) }

// value copies a value of plain data with every string and document redacted. Names of files and tests come from
// suites and are not redacted. Values without secrets are shared.
func (r redactor) value(v reflect.Value) reflect.Value {
	if v.IsZero() {
		return v
	}
	switch x := v.Interface().(type) {
	case result.TestID, result.Position:
		return v
	case string:
		return reflect.ValueOf(r.Redact(x))
	case result.Document:
		return reflect.ValueOf(result.Document(r.rawValue(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: x}).Value))
	case bson.RawValue:
		return reflect.ValueOf(r.rawValue(x))
	case bson.Binary:
		if r.Contains(x.Data) {
			x.Data = []byte(secret.Mark)
		}
		return reflect.ValueOf(x)
	}
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Interface:
		out.Set(r.value(v.Elem()))
	case reflect.Pointer:
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(r.value(v.Elem()))
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.value(v.Field(i)))
			}
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(r.value(v.Index(i)))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for entries := v.MapRange(); entries.Next(); {
			out.SetMapIndex(entries.Key(), r.value(entries.Value()))
		}
	default:
		return v
	}
	return out
}

// rawValue also redacts the names of fields. It returns no value for malformed BSON, because a report cannot show it.
func (r redactor) rawValue(v bson.RawValue) bson.RawValue {
	if !r.Contains(v.Value) {
		return v
	}
	var decoded any
	if v.Unmarshal(&decoded) != nil {
		return bson.RawValue{}
	}
	kind, clean, err := bson.MarshalValue(r.value(reflect.ValueOf(decoded)).Interface())
	if err != nil {
		return bson.RawValue{}
	}
	return bson.RawValue{Type: kind, Value: clean}
}
