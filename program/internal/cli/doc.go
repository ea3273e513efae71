// Package cli is the command line of utr. A Program is its configuration: streams, environment, engines and
// deployments. An invocation is a run of it. Its cobra commands also generate help, completion, and what package pages
// writes. conflicts.go lists the flags that exclude or require each other.
//
// The names of files begin with their group: run, suites, deploy, explain, engine, night (matrix, merge) and output.
// The groups are one package because every command uses an invocation and flags. What needs neither is in other
// packages.
package cli

//go:generate go run ./pages commands ../../../docs/commands.md
