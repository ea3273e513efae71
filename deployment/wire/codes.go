package wire

import (
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// passing are codes of errors that say nothing of the command: a server that is
// no primary or is going away, and a mongos that does not reach one (Retryable
// Reads, "Retryable Error"; Change Streams, "Resumable Error").
var passing = []int32{6, 7, 89, 91, 133, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}

// Passing reports whether a command that failed can be tried again as it was, if
// to do it twice is to do it once: the network was to blame, or a server for a
// while. So it is with writes that were done, if the wait for a majority ended
// so.
func Passing(err error) bool {
	return mongo.IsNetworkError(err) || slices.Contains(passing, CodeOf(err))
}

// CodeOf gives the server's code of an error, that of a write concern error if
// the command itself went well; 0 if it has none.
func CodeOf(err error) int32 {
	var refused mongo.CommandError
	var written mongo.WriteException
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case errors.As(err, &written) && len(written.WriteErrors) == 0 && written.WriteConcernError != nil:
		return int32(written.WriteConcernError.Code)
	}
	return 0
}
