package main

import (
	"fmt"
	"os"
	"strings"
)

// The lists of mutations: named.txt has the mutations that must be detected, survivors.txt the mutations that need not
// be. In survivors.txt, the title is the reason.
const (
	namedFile     = "internal/tools/mutate/named.txt"
	survivorsFile = "internal/tools/mutate/survivors.txt"
)

// readFile reads a list of mutations in the form of [Mutation.String]. Lines that begin with # are comments.
func readFile(name string) (mutations []Mutation, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		old, isOld := strings.CutPrefix(line, removed)
		replacement, isNew := strings.CutPrefix(line, added)
		switch {
		case line == "", line[0] == '#':
		case !isOld && !isNew:
			m := Mutation{}
			for i, part := range strings.Split(line, " | ") {
				switch i {
				case 0:
					m.Title = part
				case 1:
					m.File = part
				case 2:
					m.Run = part
				default:
					m.Tests = strings.Fields(part)
				}
			}
			mutations = append(mutations, m)
		case len(mutations) == 0:
			return nil, fmt.Errorf("%s: %q is before the first title", name, line)
		case isOld:
			mutations[len(mutations)-1].Old += old + "\n"
		default:
			mutations[len(mutations)-1].New += replacement + "\n"
		}
	}
	for i := range mutations {
		mutations[i].Old, mutations[i].New = strings.TrimSuffix(mutations[i].Old,
			"\n"), strings.TrimSuffix(mutations[i].New, "\n")
	}
	return mutations, nil
}

// without returns the mutations that are not in another list.
func without(mutations, others []Mutation) (rest []Mutation) {
	known := map[string]bool{}
	for _, m := range others {
		known[m.change()] = true
	}
	for _, m := range mutations {
		if !known[m.change()] {
			rest = append(rest, m)
		}
	}
	return rest
}

const removed, added = "  - ", "  + "

// change returns the file and the change. Together, they identify a mutation.
func (m Mutation) change() string { return m.File + "\n" + m.diff() }

// diff returns the old and the new lines.
func (m Mutation) diff() string {
	text := removed + strings.ReplaceAll(m.Old, "\n", "\n"+removed) + "\n"
	if m.New != "" {
		text += added + strings.ReplaceAll(m.New, "\n", "\n"+added) + "\n"
	}
	return text
}

// String returns a mutation as in a list: a line with its title, file, test and packages, and the change.
func (m Mutation) String() string {
	head := strings.Join([]string{m.Title, m.File, m.Run, strings.Join(m.Tests, " ")}, " | ")
	return strings.TrimRight(head, " |") + "\n" + m.diff()
}
