// Package writes has the tables of specs/retryable-writes.
package writes
