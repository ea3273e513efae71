package driver

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine/enginekit"
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
			return enginekit.SameOption(name, e.Key())
		})
		values, err := enginekit.OptionValues(e.Key(), e.Value())
		if err != nil {
			return "", "", fmt.Errorf("uriOptions.%s: %w", e.Key(), err)
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
