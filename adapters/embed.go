// Package adapters is for utr only. It contains the adapters: programs in other languages through which utr tests the
// drivers of those languages.
package adapters

import "embed"

// EnginesFile is the name of the engines file in FS.
const EnginesFile = "engines.yml"

// FS contains the adapters, so that an installed binary can run them: a folder with the sources of each, their lists of
// known failures, and an engines file that names them.
//
//go:embed engines.yml revision.sh pymongo/*.py pymongo/*.txt node/*.js node/package.json node/*.txt
//go:embed java/pom.xml java/src java/*.txt minimal-ruby rust/Cargo.toml rust/Cargo.lock rust/src rust/*.txt
var FS embed.FS
