// Command write makes the matrix of docs/engines.md anew; it is run by go
// generate in the package's directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/internal/support"
)

func main() {
	name := filepath.Join("..", "..", "docs", "engines.md")
	if err := write(name); err != nil {
		fmt.Fprintf(os.Stderr, "write %s: %v\n", name, err)
		os.Exit(1)
	}
}

func write(name string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	page, err := support.Page(string(old))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(page), 0o644)
}
