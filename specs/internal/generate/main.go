// Command generate writes suites from tables. go generate in package specs runs it.
//
// A story is a scenario of one operation: the attempts that fail, the error raised, the events and the outcome. Each
// story of each operation becomes a test. A policy has the differences between the stories of reads and of writes.
// The files reads.go, writes*.go, backpressure*.go and preferences.go have the tables and stories of a specification,
// dated.go those of earlier policies. The description of a test ends with the rule of the retry core that it checks.
//
// The suites are for any driver and any deployment since server 4.2. Anything else that a test requires
// is in its runOnRequirements, and each file declares the lowest possible schemaVersion.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Specification is a folder of suites.
type Specification struct {
	Name   string // of the folder
	Policy string // an earlier policy, and the folder is below dated; "" for the current one
	Files  []*File
}

// Folder is the folder of the suites, relative to package specs.
func (s Specification) Folder() string {
	if s.Policy != "" {
		return filepath.Join("dated", s.Name)
	}
	return s.Name
}

// Title is the prefix of the descriptions of files. That of an earlier policy is its name, from which utr run knows
// the policy that a suite is for.
func (s Specification) Title() string {
	return cmp.Or(s.Policy, strings.ReplaceAll(s.Name, "-", " "))
}

// Database is the database of the initial data.
func (s Specification) Database() string { return "utr-" + s.Name }

func all() []Specification {
	return []Specification{readSuites(), writeSuites(), overloadSuites(), preferenceSuites(),
		readsOf2024(), writesOf2018(), overloadOf2025(), preferencesOf2014()}
}

func main() {
	err := os.WriteFile(differencesFile, differences(all()), 0o644)
	for _, s := range all() {
		files, failed := s.Render()
		err = errors.Join(err, failed, os.MkdirAll(s.Folder(), 0o755))
		for name, text := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(s.Folder(), name), text, 0o644))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// Render returns the suites by file name.
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
