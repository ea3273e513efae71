// Package exchange moves values of a run to and from the records that stand for them in
// JSON: those of a report, and those in messages of engines in other processes.
//
// A record is a struct. Each of its fields is named like the field of the value that it
// stands for, or says which one in a tag: `value:"Test.File"` is a field of a field, the
// first that exists of `value:"Command.Err|Pool.Err"` counts, and `value:"-"` is none. A
// pointer with `if:"HasCode"` is nil unless that field of the value is true. What has
// another form in JSON has a type of its own, to which Go can convert the value.
package exchange

import (
	"cmp"
	"reflect"
	"strings"
)

// written is a record that has more to do when its fields were written from a value.
type written interface{ Written(from any) }

// reading is a record that has something to do before its fields are read into a value.
type reading interface{ Reading(into any) }

// Write fills a record from a value; both are pointers to structs.
func Write(record, value any) {
	structs(reflect.ValueOf(record).Elem(), reflect.ValueOf(value).Elem(), false)
}

// Read fills a value from its record.
func Read(record, value any) {
	structs(reflect.ValueOf(record).Elem(), reflect.ValueOf(value).Elem(), true)
}

func structs(record, value reflect.Value, read bool) {
	if r, is := record.Addr().Interface().(reading); is && read {
		r.Reading(value.Addr().Interface())
	}
	fields(record, value, read)
	if r, is := record.Addr().Interface().(written); is && !read {
		r.Written(value.Addr().Interface())
	}
}

func fields(record, value reflect.Value, read bool) {
	for i := range record.NumField() {
		field := record.Type().Field(i)
		if field.Anonymous {
			fields(record.Field(i), value, read)
			continue
		}
		for path := range strings.SplitSeq(cmp.Or(field.Tag.Get("value"), field.Name), "|") {
			found, exists := at(value, path)
			if !exists {
				continue
			}
			if flag := field.Tag.Get("if"); flag != "" {
				optional(record.Field(i), found, value.FieldByName(flag), read)
			} else {
				move(record.Field(i), found, read)
			}
			break
		}
	}
}

// at is the field of a struct at the end of a path. It does not exist behind a pointer that
// is nil.
func at(value reflect.Value, path string) (found reflect.Value, exists bool) {
	if path == "-" {
		return value, false
	}
	for name := range strings.SplitSeq(path, ".") {
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				return value, false
			}
			value = value.Elem()
		}
		value = value.FieldByName(name)
	}
	return value, true
}

// move moves a field of any type.
func move(record, value reflect.Value, read bool) {
	to, from := record, value
	if read {
		to, from = value, record
	}
	switch {
	case to.Kind() == from.Kind() && from.Type().ConvertibleTo(to.Type()):
		to.Set(from.Convert(to.Type()))
	case from.Kind() == reflect.Pointer && from.IsNil():
	case to.Kind() == reflect.Pointer || from.Kind() == reflect.Pointer:
		structs(target(record), target(value), read)
	case to.Kind() == reflect.Slice && from.Len() > 0:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			move(record.Index(i), value.Index(i), read)
		}
	case to.Kind() == reflect.Map && from.Len() > 0:
		to.Set(reflect.MakeMap(to.Type()))
		for key, element := range from.Seq2() {
			to.SetMapIndex(key.Convert(to.Type().Key()), element.Convert(to.Type().Elem()))
		}
	case to.Kind() == reflect.Struct:
		structs(record, value, read)
	}
}

// optional moves a field that counts only if a flag beside it is true.
func optional(record, value, flag reflect.Value, read bool) {
	switch {
	case !read && flag.Bool():
		target(record).Set(value)
	case read && !record.IsNil():
		flag.SetBool(true)
		value.Set(record.Elem())
	}
}

// target is what a pointer points to, made if there is nothing yet, or the struct itself.
func target(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}
