package enginekit

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// URI is a connection string.
type URI struct {
	base    string // everything before the options, including the slash
	Options []Option
}

// Option is one option of a connection string.
type Option struct{ Name, Value string } // unescaped

// ParseURI parses a connection string and replaces its options by uriOptions, which
// may be nil. Errors do not quote the string: it may contain a password.
func ParseURI(uri string, uriOptions bson.Raw) (URI, error) {
	base, query, _ := strings.Cut(uri, "?")
	if _, authority, _ := strings.Cut(base, "://"); !strings.Contains(authority, "/") {
		base += "/"
	}
	u := URI{base: base}
	for _, p := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, escaped, _ := strings.Cut(p, "=")
		value, err := url.QueryUnescape(escaped)
		if err != nil {
			return u, fmt.Errorf("option %s of the connection string: %w", name, err)
		}
		u.Options = append(u.Options, Option{name, value})
	}
	elements, err := uriOptions.Elements()
	if uriOptions != nil && err != nil {
		return u, fmt.Errorf("uriOptions: %w", err)
	}
	for _, e := range elements {
		u.Options = slices.DeleteFunc(u.Options, func(o Option) bool { return SameOption(o.Name, e.Key()) })
		values, err := optionValues(e.Key(), e.Value())
		if err != nil {
			return u, fmt.Errorf("uriOptions.%s: %w", e.Key(), err)
		}
		for _, v := range values {
			u.Options = append(u.Options, Option{e.Key(), v})
		}
	}
	return u, nil
}

// String returns the connection string.
func (u URI) String() string {
	var pairs []string
	for _, o := range u.Options {
		pairs = append(pairs, o.Name+"="+url.QueryEscape(o.Value))
	}
	if len(pairs) == 0 {
		return u.base
	}
	return u.base + "?" + strings.Join(pairs, "&")
}

// Spelling returns the name of an option as uriOptions spells it, "" if it is not among them.
func Spelling(uriOptions bson.Raw, name string) string {
	elements, _ := uriOptions.Elements()
	for _, e := range elements {
		if SameOption(e.Key(), name) {
			return e.Key()
		}
	}
	return ""
}

// SameOption reports whether two names are the same URI option, ignoring case. tls
// and ssl are the same option (URI Options, "List of specified options").
func SameOption(a, b string) bool {
	name := func(s string) string {
		if s = strings.ToLower(s); s == "ssl" {
			return "tls"
		}
		return s
	}
	return name(a) == name(b)
}

// optionValues converts a value of uriOptions to unescaped values for a connection string. An array is a repeated
// option (readPreferenceTags), except that compressors are one list.
func optionValues(name string, v bson.RawValue) ([]string, error) {
	switch v.Type {
	case bson.TypeString:
		return []string{v.StringValue()}, nil
	case bson.TypeBoolean:
		return []string{strconv.FormatBool(v.Boolean())}, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		n, ok := Integer(v)
		if !ok { // the driver decides
			return []string{strconv.FormatFloat(v.Double(), 'g', -1, 64)}, nil
		}
		return []string{strconv.FormatInt(n, 10)}, nil
	case bson.TypeArray:
		items, err := v.Array().Values()
		var all []string
		for _, i := range items {
			values, err := optionValues(name, i)
			if err != nil {
				return nil, err
			}
			all = append(all, values...)
		}
		if SameOption(name, "compressors") {
			all = []string{strings.Join(all, ",")}
		}
		return all, err
	case bson.TypeEmbeddedDocument:
		elements, err := v.Document().Elements()
		var properties []string
		for _, e := range elements {
			values, err := optionValues(e.Key(), e.Value())
			if err != nil || len(values) != 1 {
				return nil, fmt.Errorf("property %s is not a scalar", e.Key())
			}
			properties = append(properties, e.Key()+":"+values[0])
		}
		return []string{strings.Join(properties, ",")}, err
	}
	return nil, fmt.Errorf("an option cannot have the type %v", v.Type)
}
