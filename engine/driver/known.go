package driver

import _ "embed"

// KnownFailing lists the known failures of the driver.
//
//go:embed known-failing.txt
var KnownFailing []byte
