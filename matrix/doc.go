// Package matrix reads matrix files: clusters, engines, suites and options,
// whose product, with what is included and excluded, are the cells of a night.
// It decides and does nothing: no file is read beside the one that it is given,
// nothing is started. What a cell says are flags of utr run, which judges them.
//
// docs/nightly.md describes the file.
package matrix
