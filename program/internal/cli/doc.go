// Package cli is the command line of utr. A Program is its configuration: streams, environment, engines and
// deployments. An invocation is a run of it. Its cobra commands (root.go) also generate help, completion, and what
// package pages writes.
//
// The names of files begin with their group: run (also compare, audit and prose), suites, deploy, explain (also
// experiment), engine, night (matrix and merge) and output (also diff and site). All groups use the other files:
// flags.go declares and reads flags, conflicts.go lists those that exclude or require each other, exit.go has the exit
// codes, help.go the texts of help and the environment variables. The groups are one package because every command uses
// an invocation and flags. What needs neither is in other packages.
//
// The scripts in testdata/scripts, a folder for each topic, test command lines; scripts_test.go describes them.
package cli

//go:generate go run ./pages commands ../../../docs/commands.md
