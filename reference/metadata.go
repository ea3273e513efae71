package reference

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
)

// metadata is the metadata that libraries have appended to a client (MongoDB Handshake, "Metadata updates after
// MongoClient initialization"). Its methods may be called concurrently.
type metadata struct {
	mu       sync.Mutex
	appended []options.DriverInfo // in order, without duplicates
	// current is the appended metadata in the handshakes of new connections.
	current atomic.Pointer[options.DriverInfo]
}

// delimiter separates the metadata of libraries.
const delimiter = "|"

// append adds the metadata of a library, unless it is a duplicate (MongoDB Handshake, "Appending metadata").
func (m *metadata) append(info options.DriverInfo) error {
	for _, text := range []string{info.Name, info.Version, info.Platform} {
		if strings.Contains(text, delimiter) {
			return fmt.Errorf("%q contains the delimiter %s", text, delimiter)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.appended, info) {
		return nil
	}
	m.appended = append(m.appended, info)
	join := func(a, b string) string { return strings.Trim(a+delimiter+b, delimiter) }
	joined := options.DriverInfo{}
	for _, i := range m.appended {
		joined = options.DriverInfo{Name: join(joined.Name, i.Name), Version: join(joined.Version, i.Version),
			Platform: join(joined.Platform, i.Platform)}
	}
	m.current.Store(&joined)
	return nil
}

func appendMetadata(c *call) *result.Error {
	info, err := enginekit.DriverInfo(c.Arg("driverInfoOptions"), unsupportedField)
	if err == nil {
		if doc, _ := c.Arg("driverInfoOptions").DocumentOK(); doc.Lookup("name").Type == 0 {
			return argument("driverInfoOptions has no name")
		}
		err = c.client.metadata.append(info)
	}
	var failure *result.Error
	if err != nil && !errors.As(err, &failure) {
		failure = argument(err.Error())
	}
	return failure
}
