package specs_test

import (
	"errors"
	"testing"

	"github.com/unified-test-runner/utr/specs"
)

// FuzzParse holds that no file, however odd, makes loading panic, and that
// whatever is reported has a place and words.
func FuzzParse(f *testing.F) {
	for _, tt := range checks {
		f.Add([]byte(tt.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := specs.Parse("f.yml", data)
		var problems []specs.Problem
		var invalid *specs.InvalidError
		switch {
		case err == nil:
			problems = s.Warnings
		case errors.As(err, &invalid):
			problems = invalid.Problems
			if len(problems) == 0 {
				t.Fatal("refused for nothing")
			}
		default:
			t.Fatalf("another type of error: %T", err)
		}
		for _, p := range problems {
			if p.Position.Line < 1 || p.Position.Column < 1 || p.Message == "" || p.Rule == "" {
				t.Fatalf("problem without place or words: %#v", p)
			}
		}
	})
}
