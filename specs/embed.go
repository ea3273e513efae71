package specs

import "embed"

//go:generate go run ./internal/generate

// FS holds the suites of this project, one directory for each specification, so that an installed
// binary can run them.
//
//go:embed */*.yml
var FS embed.FS
