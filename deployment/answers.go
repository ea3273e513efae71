package deployment

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
)

// Ask sends a command to the first host of a connection string, on a connection of its own and without a handshake, so
// that fail points do not prevent it. If the server answers with an error, the reply is nil.
func Ask(ctx context.Context, text string, command bson.D) (bson.Raw, error) {
	u, err := parseURI(text)
	if err != nil {
		return nil, err
	}
	reply, err := direct.Run(ctx, withPort(u.hosts[0]), u.client("utr").TLSConfig, "admin", command)
	if direct.Refused(err) {
		return nil, nil
	}
	return reply, err
}
