package specs

import "embed"

//go:generate go run ../internal/tools/suites .
//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestRequirementsPage$ ../internal/tools/suites

// embedded contains the suites of this project, so that an installed binary can run them: a folder for each specification
// and, below dated, for each earlier policy.
//
//go:embed */*.yml dated/*/*.yml
var embedded embed.FS

// KnownFailing contains the lists of known failures of the reference engine: for official suites, and for the suites of
// earlier policies if they run under the current policy.
//
//go:embed known-failing.txt dated/known-failing.txt
var KnownFailing embed.FS
