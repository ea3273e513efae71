// Package cli is the command line of utr. A Program is configuration: streams,
// environment, engines and deployments. A call is one invocation; its commands are
// those of cobra, from which help, completion, man pages and docs/commands.md are
// made. conflicts.go lists which flags exclude or require each other.
package cli
