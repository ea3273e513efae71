// Command write writes docs/operations.md; it is run by go generate in the
// package's directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/specs/operations"
)

func main() {
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "operations.md"), []byte(operations.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "write docs/operations.md:", err)
		os.Exit(1)
	}
}
