// Package experiment runs load experiments in virtual time: clients that
// decide through the retry core (reference/retry) against a model of a server
// of limited capacity. Nothing waits and nothing is sent; an experiment is a
// function of its configuration, and the same seed gives the same report, byte
// for byte.
//
// There is one experiment, Overload: a spike of load hits a server, and the
// report compares how retry policies cope (Client Backpressure, "Motivation for
// Change").
//
// Everything here may be used concurrently: runs share nothing.
package experiment
