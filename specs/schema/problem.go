package schema

import "github.com/unified-test-runner/utr/source"

// A Problem is one thing that is wrong with a file.
type Problem struct {
	// Position of the invalid key or value, or of the object that lacks a key.
	Position source.Position
	Path     string // such as tests[0].operations[2].expectError; empty for the root
	Message  string // what is wrong and what was expected

	needs int // minor version that allows it; 0 if no version does
}
