package result

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// LogMessage is one structured log message of one client (Logging
// specification). Sequence numbers count from 1 per client, in the order in
// which the messages were written.
type LogMessage struct {
	Sequence  int64
	Time      time.Time
	Level     string // emergency, alert, critical, error, warning, notice, info, debug, trace
	Component string // command, topology, serverSelection, connection
	// Data holds what is attached to the message, commands and replies as
	// Extended JSON strings.
	Data bson.Raw
	// FailureRedacted says whether the failure in Data was redacted
	// (Command Logging and Monitoring, "Security"); nil if there is no
	// failure.
	FailureRedacted *bool
}
