// Package command is the command utr as a function, for Go drivers in other
// repositories: a program that calls Main with an engine has all commands of utr,
// with their flags, reports, matrices and comparisons. docs/write-an-engine.md
// describes engines.
package command
