package deployment

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/internal/secret"
)

// URIOption is an option that is added to connection strings, such as
// compressors=zlib. Value is as it is meant, without escapes.
type URIOption struct{ Name, Value string }

// String is NAME=VALUE, to be shown: without a secret.
func (o URIOption) String() string {
	if secret.IsOption(o.Name) {
		return o.Name + "=" + secret.Mark
	}
	return o.Name + "=" + o.Value
}

// GoString shows no secret either.
func (o URIOption) GoString() string { return o.String() }

// ParseURIOption reads NAME=VALUE.
func ParseURIOption(text string) (URIOption, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || value == "" || strings.ContainsAny(name, "&;?/@ ") {
		return URIOption{}, errors.New("it must be NAME=VALUE, such as compressors=zlib")
	}
	return URIOption{name, value}, nil
}

// CheckURIOptions says what is wrong with options by themselves: one that no
// driver knows, or a value that it cannot have.
func CheckURIOptions(options []URIOption) error {
	if len(options) == 0 {
		return nil
	}
	if err := CheckURI(uri{scheme: "mongodb", hosts: []string{"localhost"}}.withAll(options).String()); err != nil {
		return fmt.Errorf("it makes no connection string: %w", err)
	}
	return nil
}
