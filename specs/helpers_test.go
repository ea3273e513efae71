package specs_test

import (
	"os"
	"path/filepath"
	"testing"
)

// official gives the directory of the official suites, or skips the test.
func official(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
	suites := filepath.Join(filepath.Dir(dir), "shared", "specifications")
	if _, err := os.Stat(suites); err != nil {
		t.Skip("official suites not there")
	}
	return suites
}
