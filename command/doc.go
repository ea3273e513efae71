// Package command runs the command utr, for Go drivers in other repositories: a
// program that passes an engine to Main has all commands of utr. See
// docs/write-an-engine.md.
package command
