// Command drivers generates docs/drivers.md from the report of drivers.yml:
//
//	utr matrix docs/examples/drivers.yml --json drivers.json
//	go run ./internal/drivers drivers.json > docs/drivers.md
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/unified-test-runner/utr/internal/site"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drivers REPORT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "drivers: %s\n", err)
		os.Exit(1)
	}
}

func write(name string, to io.Writer) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	read, err := site.Read(name, from, time.Time{})
	if err != nil {
		return err
	}
	page, err := site.Markdown(read)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = io.WriteString(to, page)
	return err
}
