// Package cli is the command line of utr. A Program is configuration: where
// streams go, what the environment says, which engines and deployments can be
// had. Commands are rows of one table, from which usage, completion and
// docs/commands.md are made. What belongs to one invocation lives in a call.
package cli
