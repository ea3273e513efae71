package runner

import "errors"

// ErrNoTestCommands is what errors.Is finds in a NoTestCommandsError.
var ErrNoTestCommands = errors.New("the deployment does not have enableTestCommands")

// NoTestCommandsError refuses a deployment whose servers were started without
// the parameter that fail points need ("Server Compatibility").
type NoTestCommandsError struct {
	Deployment string // its name
}

// Error says why, and what to do.
func (e *NoTestCommandsError) Error() string {
	return "the deployment (" + e.Deployment + ") runs without test commands: suites set fail points, and configureFailPoint exists only on " +
		"servers started with the parameter enableTestCommands; start each mongod and mongos with --setParameter enableTestCommands=1 " +
		"(it cannot be set at run time), and use no server that holds data you want to keep"
}

// Unwrap makes errors.Is(err, ErrNoTestCommands) true.
func (e *NoTestCommandsError) Unwrap() error { return ErrNoTestCommands }
