package cli

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/embedded/process"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// The environment variables that commands read.
const (
	envURI          = "UTR_URI"
	envSingleURI    = "UTR_SINGLE_URI"
	envPassword     = "UTR_PASSWORD"  // lists of processes do not show it
	envDriversTools = "DRIVERS_TOOLS" // the folder of drivers-evergreen-tools
	envActions      = "GITHUB_ACTIONS"
	envNoColor      = "NO_COLOR"
	envTerminal     = "TERM"
)

// environmentTable is the part of the help of utr that describes environment variables.
func environmentTable() string {
	var b strings.Builder
	b.WriteString("Environment variables:\n")
	for _, v := range [...]struct{ name, use string }{
		{envURI, "connection string of the deployment, for commands that have --uri"},
		{envSingleURI, "the same for --single-uri"},
		{envPassword, "password of utr serve --user"},
		{envDriversTools, "the same as --orchestration-files"},
		{process.EnvVersion, "version that utr mongod and utr mongos imitate"},
		{ledger.EnvDir, "folder of the ledger, which utr clean reads"},
		{ledger.EnvParent, "parent of that folder, if " + ledger.EnvDir + " is not set"},
		{envActions, "if it is true, failures are annotated for GitHub Actions"},
		{envNoColor, "if it is set, output has no colors"},
		{envTerminal, "if it is dumb, output has no colors and no progress line"},
	} {
		fmt.Fprintf(&b, "  %-18s %s\n", v.name, v.use)
	}
	return b.String()
}
