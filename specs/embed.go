package specs

import "embed"

//go:generate go run ../internal/tools/suites .
//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestRequirementsPage$ ../internal/tools/suites

// FS holds the suites of this project, a folder for each specification and, below dated, for each earlier
// policy, so that an installed binary can run them.
//
//go:embed */*.yml dated/*/*.yml
var FS embed.FS

// KnownFailing holds the lists of known failures of the reference engine: official suites, and suites for earlier
// policies under the current one.
//
//go:embed known-failing.txt dated/known-failing.txt
var KnownFailing embed.FS
