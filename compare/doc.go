// Package compare holds two engines against each other. It runs the same
// suites through both, reduces each verdict to an Observation from which all
// that may differ by chance is folded away, and lists what remains different.
// Schedules of operations and faults are generated, and one that differs is
// shrunk to the smallest that still does, as a suite file that anybody can run.
//
// Which of two engines is right is not decided here but by the specifications:
// Deviations is the table of the decisions.
package compare
