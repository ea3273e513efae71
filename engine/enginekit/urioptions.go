package enginekit

import (
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// SameOption compares names of URI options, whatever their case; tls and ssl are
// two names of one (URI Options, "Connection String Options").
func SameOption(a, b string) bool {
	name := func(s string) string {
		if s = strings.ToLower(s); s == "ssl" {
			return "tls"
		}
		return s
	}
	return name(a) == name(b)
}

// OptionValues writes a value of uriOptions as in a connection string, without
// escapes. An array is an option that stands several times (readPreferenceTags),
// but for compressors, which are one list.
func OptionValues(name string, v bson.RawValue) ([]string, error) {
	values, err := optionValues(v)
	if err == nil && SameOption(name, "compressors") {
		values = []string{strings.Join(values, ",")}
	}
	return values, err
}

func optionValues(v bson.RawValue) ([]string, error) {
	switch v.Type {
	case bson.TypeString:
		return []string{v.StringValue()}, nil
	case bson.TypeBoolean:
		return []string{strconv.FormatBool(v.Boolean())}, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		n, ok := Integer(v)
		if !ok {
			return nil, fmt.Errorf("%v is no whole number", v)
		}
		return []string{strconv.FormatInt(n, 10)}, nil
	case bson.TypeArray:
		items, err := v.Array().Values()
		var all []string
		for _, i := range items {
			values, err := optionValues(i)
			if err != nil {
				return nil, err
			}
			all = append(all, values...)
		}
		return all, err
	case bson.TypeEmbeddedDocument:
		elements, err := v.Document().Elements()
		var properties []string
		for _, e := range elements {
			values, err := optionValues(e.Value())
			if err != nil || len(values) != 1 {
				return nil, fmt.Errorf("property %s is no plain value", e.Key())
			}
			properties = append(properties, e.Key()+":"+values[0])
		}
		return []string{strings.Join(properties, ",")}, err
	}
	return nil, fmt.Errorf("a value of type %v is no option", v.Type)
}
