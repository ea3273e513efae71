package main

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The old text of every row occurs in its file exactly once.
func TestListFits(t *testing.T) {
	t.Chdir(testkit.Root(t))
	rows, err := readList("")
	testkit.Check(t, err)
	for _, m := range rows {
		if n := strings.Count(testkit.Read(t, m.File), m.Old); n != 1 || m.Old == m.New {
			t.Errorf("%s: %q occurs in the file %d times", m.File, m.Old, n)
		}
		if m.Why == "" {
			t.Errorf("%s: %q: the row has no reason", m.File, m.Old)
		}
	}
}

func TestTry(t *testing.T) {
	t.Chdir(testkit.Root(t))
	const file = "internal/testkit/seed.go"
	text := testkit.Read(t, file)
	first, _, _ := strings.Cut(text, "\n")
	for _, r := range []struct {
		reason   string
		old, new string
		want     verdict
	}{
		{"a comment", first, first + "\n// changed", survived},
		{"a fault that a test finds", `os.Getenv("UTR_SEED")`, `os.Getenv("UTR_SEEDS")`, killed},
		{"a missing text", "no such text", "x", unfit},
		{"a program that does not build", first, "no Go", unfit},
	} {
		got, _ := (Mutation{File: file, Old: r.old, New: r.new}).try(testkit.Context(t))
		testkit.Equal(t, r.reason, got, r.want)
	}
}
