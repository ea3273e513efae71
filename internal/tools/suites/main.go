// Command generate writes suites from tables. go generate in package specs runs it.
//
// A story is a scenario of one operation: the attempts that fail, the error raised, the events and the outcome. Each
// story of each operation becomes a test. A policy has the differences between the stories of reads and of writes.
// The files reads.go, writes*.go, backpressure*.go, preferences.go and tracing.go have the tables and stories of a
// specification, and dated.go the stories of earlier policies. The folder servers has the demands on a server. The
// description of a test ends with the rule that it checks: of the retry core, or of servers. Suites are values. The
// YAML library prints them.
//
// The suites are for any driver and any deployment since server 4.2. Anything else that a test requires
// is in its runOnRequirements, and each file declares the lowest possible schemaVersion.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// specification is a folder of suites.
type specification struct {
	Name    string // of the folder
	Policy  string // an earlier policy, and the folder is below dated; "" for the current one
	Numbers string // what the numbers at the end of descriptions are; "" for rules of the retry core
	Files   []*file
}

// folder is the folder of the suites, relative to package specs.
func (s specification) folder() string {
	if s.Policy != "" {
		return path.Join("dated", s.Name)
	}
	return s.Name
}

// title is the prefix of the descriptions of files. The prefix of an earlier policy is its name, so that utr run can
// derive the policy that a suite is for.
func (s specification) title() string {
	return cmp.Or(s.Policy, strings.ReplaceAll(s.Name, "-", " "))
}

// database is the database of the initial data.
func (s specification) database() string { return "utr-" + s.Name }

func all() []specification {
	return []specification{readSuites(), writeSuites(), overloadSuites(), preferenceSuites(), serverSuites(),
		tracingSuites(),
		readsOf2024(), writesOf2018(), overloadOf2025(), preferencesOf2014()}
}

const usage = `usage: generate FOLDER

Writes the suites below a folder, each specification into its own folder, and suites of earlier policies below dated.
It writes nothing outside FOLDER. "go generate ./specs" runs it for the folder specs.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program. It returns the exit code.
func run(arguments []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil || flags.NArg() != 1:
		fmt.Fprint(stderr, usage)
		return 2
	}
	if err := write(flags.Arg(0)); err != nil {
		fmt.Fprintln(stderr, "generate:", err)
		return 1
	}
	return 0
}

// write writes all suites, and the list of tests that fail under the current policy, below a folder.
func write(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, s := range all() {
		files, failed := s.render()
		err = errors.Join(err, failed, root.MkdirAll(s.folder(), 0o755))
		for name, text := range files {
			err = errors.Join(err, root.WriteFile(path.Join(s.folder(), name), text, 0o644))
		}
	}
	return errors.Join(err, root.WriteFile(differencesFile, differences(all()), 0o644))
}

// render returns the suites by file name.
func (s specification) render() (map[string][]byte, error) {
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
