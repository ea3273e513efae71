package specs

import "embed"

//go:generate go run ./internal/generate

// FS holds the suites of this project, one directory a specification, so that
// an installed binary runs them with no checkout at hand. A new file or
// directory is embedded without a change here.
//
//go:embed */*.yml
var FS embed.FS
