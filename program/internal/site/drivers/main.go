// Command drivers generates docs/drivers.md and docs/driver/releases.md from the report of drivers.yml:
//
//	utr matrix docs/examples/drivers.yml --jobs 2 --json drivers.json
//	go run ./program/internal/site/drivers drivers.json docs
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/program/internal/compare"
	"github.com/unified-test-runner/utr/program/internal/site"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: drivers REPORT FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "drivers: %s\n", err)
		os.Exit(1)
	}
}

// write makes the pages of a report, and writes them into a folder if all of them can be made.
func write(name, folder string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	read, err := site.ReadReleases(name, from)
	if err != nil {
		return err
	}
	state, err := site.Markdown(read.Report)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	releases, err := read.Markdown(compare.BySuite())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "drivers.md"), []byte(state), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "driver", "releases.md"), []byte(releases), 0o644)
}
