package deployment

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
)

// Answers returns an error unless the first host of a connection string answers a command, if only with an error. It
// sends one that needs neither a handshake nor a user and that suites do not make fail, on a connection of its own. The
// error contains no credentials.
func Answers(ctx context.Context, text string) error {
	u, err := parseURI(text)
	if err != nil {
		return err
	}
	_, err = direct.Run(ctx, withPort(u.hosts[0]), u.client("utr").TLSConfig, "admin", bson.D{{Key: "whatsmyuri", Value: 1}})
	if direct.CodeOf(err) != 0 {
		return nil
	}
	return u.redact(err)
}
