// Package reads has the tables of specs/retryable-reads.
package reads
