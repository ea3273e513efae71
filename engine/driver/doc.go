// Package driver is the official Go driver (go.mongodb.org/mongo-driver/v2) as
// an engine: entities and operations of the format are turned into calls of
// its public API, and what it gives back into outcomes and events.
//
// The adapter adds nothing to the driver's behaviour and takes nothing away:
// it never retries, times out or repairs by itself. An argument, an option or
// an operation that the driver does not have is refused with a
// *result.Error that names it as Unsupported, so that the test is skipped;
// nothing is dropped silently.
package driver
