package reference

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// metadata is what libraries that wrap the client have appended to it
// (MongoDB Handshake, "Metadata updates after MongoClient initialization"). Its
// methods may be called concurrently.
type metadata struct {
	mu       sync.Mutex
	appended []options.DriverInfo // each once, in the order in which they came
	// current is what the topology adds to its own in the handshake of every new
	// connection.
	current atomic.Pointer[options.DriverInfo]
}

// delimiter stands between what several libraries say of themselves.
const delimiter = "|"

// append adds what a library says of itself, unless the very same was said
// before (MongoDB Handshake, "Appending metadata").
func (m *metadata) append(info options.DriverInfo) error {
	for _, text := range []string{info.Name, info.Version, info.Platform} {
		if strings.Contains(text, delimiter) {
			return fmt.Errorf("%q has the delimiter %s", text, delimiter)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.appended, info) {
		return nil
	}
	m.appended = append(m.appended, info)
	joined := options.DriverInfo{}
	for _, i := range m.appended {
		joined = options.DriverInfo{Name: joinMetadata(joined.Name, i.Name),
			Version: joinMetadata(joined.Version, i.Version), Platform: joinMetadata(joined.Platform, i.Platform)}
	}
	m.current.Store(&joined)
	return nil
}

// joinMetadata leaves out what is not set.
func joinMetadata(before, more string) string {
	if before == "" || more == "" {
		return before + more
	}
	return before + delimiter + more
}

func appendMetadata(c *call) *result.Error {
	var lack *result.Error
	info, err := enginekit.DriverInfo(c.Arg("driverInfoOptions"), lacking)
	switch doc, _ := c.Arg("driverInfoOptions").DocumentOK(); {
	case errors.As(err, &lack):
		return lack
	case err == nil && doc.Lookup("name").Type == 0:
		return argument("driverInfoOptions has no name")
	case err == nil:
		err = c.client.metadata.append(info)
	}
	if err != nil {
		return argument(err.Error())
	}
	return nil
}
