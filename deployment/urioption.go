package deployment

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/unified-test-runner/utr/internal/text/secret"
)

// URIOption is an option that is added to connection strings, such as compressors=zlib. Value is not escaped.
type URIOption struct{ Name, Value string }

// String returns NAME=VALUE without a secret value.
func (o URIOption) String() string {
	if secret.IsOption(o.Name) {
		return o.Name + "=" + secret.Mark
	}
	return o.Name + "=" + o.Value
}

// GoString does not contain the secret either.
func (o URIOption) GoString() string { return o.String() }

// ParseURIOption parses NAME=VALUE. It rejects values that the Go driver rejects.
func ParseURIOption(text string) (o URIOption, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || value == "" || strings.ContainsAny(name, "&;?/@ ") {
		return o, errors.New("it must be NAME=VALUE, such as compressors=zlib")
	}
	o = URIOption{name, value}
	alone := uri{scheme: "mongodb", hosts: []string{"localhost"}}.withAll([]URIOption{o})
	if err := CheckURI(alone.String()); err != nil {
		return o, fmt.Errorf("invalid in a connection string: %w", err)
	}
	return o, nil
}

// OptionsOf returns the options of a connection string as written, repeated ones included. If an @ follows, they may be
// part of a password, and it returns nil.
func OptionsOf(text string) (all []URIOption) {
	u, err := parseURI(text)
	if err != nil || strings.Contains(text[len(u.scheme)+len("://")+len(u.userinfo):], "@") {
		return nil
	}
	for _, o := range u.given {
		name, err := url.QueryUnescape(o.key)
		value, err2 := url.QueryUnescape(o.value)
		if err == nil && err2 == nil {
			all = append(all, URIOption{name, value})
		}
	}
	return all
}

// Known reports whether the Go driver has the option. Drivers ignore others (Connection String, "Keys").
func (o URIOption) Known() bool {
	alone, err := connstring.Parse(uri{scheme: "mongodb", hosts: []string{"localhost"}}.withAll([]URIOption{o}).String())
	return err != nil || len(alone.UnknownOptions) == 0
}

// List reports whether the option can be repeated (Connection String, "Values").
func (o URIOption) List() bool { return strings.EqualFold(o.Name, "readPreferenceTags") }
