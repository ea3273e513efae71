package deployment

import "time"

// LogLine is one line of the log that a server keeps of itself. It holds no
// secret: no password, no payload of an authentication.
type LogLine struct {
	Time   time.Time
	Server string // host:port, as drivers name it
	Text   string // one line
}

// Logger is implemented by deployments that have the logs of their servers:
// those that we started. The runner puts an excerpt into the verdict of a test
// that did not pass.
type Logger interface {
	// Log gives the lines from one time to another, both included, oldest
	// first. It may be called while the servers run, and has not to give what
	// is long ago: a bounded number of lines is enough.
	Log(from, to time.Time) []LogLine
}
