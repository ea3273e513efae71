// Package matrix reads matrix files: the product of clusters, engines, suites and options, with exclusions and
// inclusions, is a list of cells. The settings of a cell are flags of utr run, which checks their values. The
// package starts nothing and reads no other files.
//
// It also reads engines files, which name drivers in other processes.
//
// docs/nightly.md describes matrix files, docs/engines.md engines files.
package matrix
