// Package examples contains the example configurations of the documentation.
package examples

import "embed"

// Matrices holds matrix files, for utr new.
//
//go:embed drivers.yml nightly.yml orchestration.yml
var Matrices embed.FS
