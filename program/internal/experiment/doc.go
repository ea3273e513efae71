// Package experiment runs load experiments in virtual time: clients that use the retry core (reference/retry) and a
// model of a server with limited capacity. The report depends only on the configuration, including the seed.
//
// The only experiment, Overload, compares retry policies in a spike of load (Client
// Backpressure, "Motivation for Change").
//
// All functions may be called concurrently.
package experiment
