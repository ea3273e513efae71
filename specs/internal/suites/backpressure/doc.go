// Package backpressure has the tables of specs/client-backpressure.
package backpressure
