// Command generate writes the suites that are made from tables. It is run by
// go generate in package specs.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/specs/internal/reads"
)

func main() {
	if err := write("retryable-reads"); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := reads.Files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
