// Package cli is the command line of utr. A Program is its configuration: streams, environment, engines and
// deployments. A call is one invocation. Its cobra commands also generate help, completion, and what package pages
// writes. conflicts.go lists the flags that exclude or require each other.
package cli

//go:generate go run ./pages commands ../../../docs/commands.md
