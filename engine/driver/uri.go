package driver

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// withOptions writes uriOptions into a connection string, each in the place
// of one of the same name. The string must then be one that the driver knows
// all of: it ignores options that it does not know. The second result is
// serverMonitoringMode, which the driver reads and does not apply; "" if it is
// not there.
func withOptions(uri string, uriOptions bson.Raw) (string, string, error) {
	base, query, _ := strings.Cut(uri, "?")
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	written := map[string]string{} // as the suite writes them, by lower-case name
	elements, err := uriOptions.Elements()
	if err != nil && uriOptions != nil {
		return "", "", fmt.Errorf("uriOptions: %w", err)
	}
	for _, e := range elements {
		written[strings.ToLower(e.Key())] = e.Key()
		pairs = slices.DeleteFunc(pairs, func(p string) bool {
			name, _, _ := strings.Cut(p, "=")
			return sameOption(name, e.Key())
		})
		values, err := optionValues(e.Value())
		if err != nil {
			return "", "", fmt.Errorf("uriOptions.%s: %w", e.Key(), err)
		}
		if strings.EqualFold(e.Key(), "compressors") {
			values = []string{strings.Join(values, ",")}
		}
		for _, v := range values {
			pairs = append(pairs, e.Key()+"="+url.QueryEscape(v))
		}
	}
	if _, authority, _ := strings.Cut(base, "://"); !strings.Contains(authority, "/") {
		base += "/"
	}
	if len(pairs) > 0 {
		base += "?" + strings.Join(pairs, "&")
	}
	known, err := connstring.Parse(base)
	if err != nil {
		return "", "", err
	}
	for name := range known.UnknownOptions {
		if as, ours := written[name]; ours {
			name = as
		}
		return "", "", unsupported("uriOptions." + name)
	}
	if known.SocketTimeoutSet { // it reads it, and forgets it
		return "", "", unsupported("uriOptions.socketTimeoutMS")
	}
	return base, known.ServerMonitoringMode, nil
}

// sameOption compares names of options; tls and ssl are two names of one.
func sameOption(a, b string) bool {
	name := func(s string) string {
		if s = strings.ToLower(s); s == "ssl" {
			return "tls"
		}
		return s
	}
	return name(a) == name(b)
}

// optionValues writes the value of a URI option as in a connection string.
// Arrays are options that may stand several times, or lists.
func optionValues(v bson.RawValue) ([]string, error) {
	switch v.Type {
	case bson.TypeString:
		return []string{v.StringValue()}, nil
	case bson.TypeBoolean:
		return []string{strconv.FormatBool(v.Boolean())}, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		n, ok := integer(v)
		if !ok {
			return nil, errType
		}
		return []string{strconv.FormatInt(n, 10)}, nil
	case bson.TypeArray:
		values, err := v.Array().Values()
		var out []string
		for _, i := range values {
			s, err := optionValues(i)
			if err != nil {
				return nil, err
			}
			out = append(out, s...)
		}
		return out, err
	case bson.TypeEmbeddedDocument:
		elements, err := v.Document().Elements()
		var properties []string
		for _, e := range elements {
			s, err := optionValues(e.Value())
			if err != nil || len(s) != 1 {
				return nil, fmt.Errorf("property %s is no plain value", e.Key())
			}
			properties = append(properties, e.Key()+":"+s[0])
		}
		return []string{strings.Join(properties, ",")}, err
	}
	return nil, errType
}
