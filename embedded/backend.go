package embedded

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/server"
)

// newBackend is the data of a deployment.
func newBackend(Options) server.Backend { return nothing{} }

// nothing stands in until the data side is there.
type nothing struct{}

func (nothing) Rows() []command.Row           { return nil }
func (nothing) OperationTime() bson.Timestamp { return bson.Timestamp{T: 1, I: 1} }
func (nothing) EndSessions([]bson.Raw)        {}
func (nothing) KillSessions([]bson.Raw)       {}
