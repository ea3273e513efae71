package driver

import (
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
	u, err := enginekit.ParseURI(uri, uriOptions)
	if err != nil {
		return "", "", err
	}
	known, err := connstring.Parse(u.String())
	if err != nil {
		return "", "", err
	}
	for name := range known.UnknownOptions {
		for _, o := range u.Options { // as it is written
			if strings.EqualFold(o.Name, name) && uriOptions.Lookup(o.Name).Type != 0 {
				name = o.Name
			}
		}
		return "", "", unsupported("uriOptions." + name)
	}
	if known.SocketTimeoutSet { // it reads it, and forgets it
		return "", "", unsupported("uriOptions.socketTimeoutMS")
	}
	return u.String(), known.ServerMonitoringMode, nil
}
