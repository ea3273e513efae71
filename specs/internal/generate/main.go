// Command generate writes the suites that are made from tables. It is run by
// go generate in package specs.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/specs/internal/suites"
	"github.com/unified-test-runner/utr/specs/internal/suites/backpressure"
	"github.com/unified-test-runner/utr/specs/internal/suites/reads"
	"github.com/unified-test-runner/utr/specs/internal/suites/writes"
)

// all are the specifications with tables.
func all() []suites.Specification {
	return []suites.Specification{reads.Suites(), writes.Suites(), backpressure.Suites()}
}

func main() {
	for _, s := range all() {
		if err := write(s); err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

func write(s suites.Specification) error {
	files, err := s.Render()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Name, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.Name, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
