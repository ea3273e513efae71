// Package matrix reads matrix files: clusters, engines, suites and options,
// whose product, with what is included and excluded, are the cells of a night.
// It only decides: it starts nothing and reads nothing but the text that it gets.
// The settings of a cell are flags of utr run, which checks their values.
//
// It also reads engines files, which name drivers in other processes.
//
// docs/nightly.md describes matrix files, docs/engines.md engines files.
package matrix
