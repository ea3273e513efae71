// Package matrix reads matrix files: clusters, engines, suites and options,
// whose product, with what is included and excluded, are the cells of a night.
// It only decides: it starts nothing and reads nothing but the text that it gets.
// The settings of a cell are flags of utr run, which checks their values.
//
// docs/nightly.md describes the file.
package matrix
