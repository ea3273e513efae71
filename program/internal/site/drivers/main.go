// Command drivers generates docs/drivers.md, docs/driver/releases.md and docs/driver/deviations from
// docs/driver/drivers.json. With the report of drivers.yml, it first generates this file:
//
//	utr matrix docs/examples/drivers.yml --jobs 2 --json drivers.json
//	go run ./program/internal/site/drivers drivers.json docs
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/program/internal/compare"
)

//go:generate go run . ../../../../docs

func main() {
	arguments := os.Args[1:]
	if len(arguments) != 1 && len(arguments) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drivers [REPORT] FOLDER")
		os.Exit(2)
	}
	folder := arguments[len(arguments)-1]
	var err error
	if len(arguments) == 2 {
		err = update(arguments[0], folder)
	}
	if err == nil {
		err = write(folder)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "drivers: %s\n", err)
		os.Exit(1)
	}
}

// dataFile is the file of the data below docs.
const dataFile = "driver/drivers.json"

// update makes the data from a report.
func update(name, folder string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	d, err := read(name, from, compare.BySuite())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", " ")
	if err := to.Encode(d); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, dataFile), text.Bytes(), 0o644)
}

// saved returns the data.
func saved(folder string) (d data, err error) {
	text, err := os.ReadFile(filepath.Join(folder, dataFile))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d, err
}

// write writes the pages if all of them can be made.
func write(folder string) error {
	d, err := saved(folder)
	if err != nil {
		return err
	}
	pages, err := d.pages(compare.Deviations())
	if err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
