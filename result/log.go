package result

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// LogMessage is a structured log message of a client (Logging specification).
// Sequence numbers start at 1 for each client.
type LogMessage struct {
	Sequence  int64
	Time      time.Time
	Level     string   // emergency, alert, critical, error, warning, notice, info, debug, trace
	Component string   // command, topology, serverSelection, connection
	Data      bson.Raw // commands and replies are Extended JSON strings
	// FailureRedacted reports whether the failure in Data was redacted (Command
	// Logging and Monitoring, "Security"); nil without a failure.
	FailureRedacted *bool
}
