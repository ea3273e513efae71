package schema

import "github.com/unified-test-runner/utr/source"

// A Problem is one thing that is wrong with a file.
type Problem struct {
	// Position is that of the key, if the key is at fault, otherwise that of
	// the value. Of what is missing, it is that of the object that lacks it.
	Position source.Position
	// Path leads from the root to the place, such as
	// tests[0].operations[2].expectError; empty for the root.
	Path string
	// Message says what is wrong and what was expected.
	Message string

	needs int // minor version that would mend it; 0: none would
}
