// Package shared finds what tests use and this repository does not hold: the
// official suites and the recordings, in a folder "shared" beside the checkout.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Path gives the path of a file or folder below ../shared of the repository, and
// skips the test if it is not there: Path(t, "specifications", "crud").
func Path(t testing.TB, elements ...string) string {
	t.Helper()
	path, found := Find(t, elements...)
	if !found {
		t.Skip("official suites not there")
	}
	return path
}

// Find is Path for tests that can do without: it tells whether the file or folder
// is there.
func Find(t testing.TB, elements ...string) (path string, found bool) {
	t.Helper()
	path = filepath.Join(append([]string{root(t), "..", "shared"}, elements...)...)
	_, err := os.Stat(path)
	return path, err == nil
}

// root is the folder of the repository, in or below which a test runs.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the test")
	return ""
}
