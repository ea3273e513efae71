// Package compare runs the same suites through two engines. It reduces each
// verdict to an observation without anything that may differ by chance, and lists
// what remains different. It also generates schedules of operations and faults,
// and shrinks one that differs to the smallest that still does, as a suite file
// that anybody can run.
//
// It does not decide which of the two engines is right: the specifications do,
// and Deviations is the table of the decisions.
package compare
