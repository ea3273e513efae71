// Package compare runs the same suites through two engines. It reduces each verdict to an observation without random
// details and lists the differences. It also generates schedules of operations and faults, shrinks a schedule that
// differs to a minimal one, and writes it as a suite.
//
// It does not decide which engine is correct. Deviations is the table of decisions by the specifications.
package compare
