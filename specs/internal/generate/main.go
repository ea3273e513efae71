// Command generate writes suites from tables. It is run by go generate in
// package specs.
//
// What all specifications have in common comes first: files, clients,
// operations, fail points, and stories of what can happen to an operation, from
// which its test follows: what is sent, what is raised, what is left behind. A
// policy is what the stories of reads and of writes differ in. The files
// reads.go, writes*.go and backpressure*.go have the tables of a specification
// each: operations, errors, and stories of its own. Every test says in its
// description which rule of reference/retry it checks.
//
// The suites are for any driver and any deployment since server 4.2. What a
// test needs beyond that stands in its runOnRequirements, and each file
// declares the lowest schemaVersion that it can.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Specification is a folder of suites.
type Specification struct {
	Name  string // of the folder
	Dated bool   // follows an earlier policy; the folder is below dated, not below specs
	Files []*File
}

// Folder is where the suites are, as seen from the package specs.
func (s Specification) Folder() string {
	if s.Dated {
		return filepath.Join("..", "dated", s.Name)
	}
	return s.Name
}

// Title begins the descriptions of files.
func (s Specification) Title() string {
	name, date := s.Name, ""
	if s.Dated {
		name, date, _ = strings.Cut(s.Name, "-20")
		date = " of 20" + date
	}
	return strings.ReplaceAll(name, "-", " ") + date
}

// Database is that of the initial data.
func (s Specification) Database() string { return "utr-" + s.Name }

// all are the specifications with tables.
func all() []Specification {
	return []Specification{readSuites(), writeSuites(), overloadSuites(), preferenceSuites(),
		readsOf2024(), writesOf2018(), overloadOf2025(), preferencesOf2014()}
}

func main() {
	err := os.WriteFile(differencesFile, differences(all()), 0o644)
	for _, s := range all() {
		err = errors.Join(err, s.write())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func (s Specification) write() error {
	files, err := s.Render()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Folder(), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.Folder(), name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Render writes the suites by file name.
func (s Specification) Render() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, f := range s.Files {
		text, err := f.render(s)
		if err != nil {
			return nil, err
		}
		if _, twice := out[f.Name+".yml"]; twice {
			return nil, fmt.Errorf("there are two files %s", f.Name)
		}
		out[f.Name+".yml"] = text
	}
	return out, nil
}
