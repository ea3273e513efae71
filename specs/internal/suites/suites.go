// Package suites writes suites from tables. What all specifications have in
// common is here: files, clients, operations, fail points, and stories of what
// can happen to an operation, from which its test follows: what is sent, what
// is raised, what is left behind. A policy is what the stories of reads and of
// writes differ in. Each specification has a package below with its tables:
// operations, errors, and stories of its own. Every test says in its
// description which rule of reference/retry it checks.
//
// The suites are for any driver and any deployment since server 4.2. What a
// test needs beyond that stands in its runOnRequirements, and each file
// declares the lowest schemaVersion that it can.
package suites

import "fmt"

// Specification is a folder of suites.
type Specification struct {
	Name     string // of the folder below specs
	Title    string // with which descriptions begin
	Package  string // with the tables, below this one
	Database string // of the initial data
	Files    []*File
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
