package cache

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestDir(t *testing.T) {
	home, err := os.UserCacheDir()
	testkit.Check(t, err)
	for _, r := range []struct{ reason, value, want string }{
		{"in the user's cache folder", "", filepath.Join(home, "utr")},
		{"as the variable says", filepath.Join(home, "x"), filepath.Join(home, "x")},
	} {
		dir, err := Dir(func(string) string { return r.value })
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, dir, r.want)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	_, err = Dir(func(string) string { return "" })
	testkit.ErrorContains(t, err, "set $UTR_CACHE_DIR to a folder")
}

// Runs that unpack at the same time get the same folder with all files, and leave nothing else.
func TestUnpackAtTheSameTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	files := fstest.MapFS{"a/x.py": {Data: []byte("print(1)")}, "y.txt": {Data: []byte("why")}}
	places := make([]string, 16)
	var all sync.WaitGroup
	for i := range places {
		all.Go(func() {
			place, err := Unpack(dir, files)
			if err != nil {
				t.Error(err)
				return
			}
			places[i] = testkit.Read(t, filepath.Join(place, "a", "x.py")) + testkit.Read(t, filepath.Join(place, "y.txt"))
		})
	}
	all.Wait()
	for _, text := range places {
		testkit.Equal(t, "the files", text, "print(1)why")
	}
	left, err := os.ReadDir(dir)
	testkit.Check(t, err)
	testkit.Equal(t, "folders in the cache", len(left), 1)
}

// The folder depends on names and contents, so that a new version of utr does not use the files of an old one.
func TestPlace(t *testing.T) {
	of := func(files fstest.MapFS) string {
		place, err := Place("", files)
		testkit.Check(t, err)
		return place
	}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	first := of(fstest.MapFS{"a": file("1")})
	testkit.Equal(t, "the same files", of(fstest.MapFS{"a": file("1")}), first)
	for reason, other := range map[string]fstest.MapFS{
		"another content":    {"a": file("2")},
		"another name":       {"b": file("1")},
		"one more file":      {"a": file("1"), "b": file("")},
		"a file in a folder": {"a/a": file("1")},
	} {
		testkit.Equal(t, reason+" is in another folder", of(other) != first, true)
	}
}

// A folder that cannot be created is an error that names it.
func TestUnpackFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.Check(t, os.WriteFile(file, nil, 0o600))
	_, err := Unpack(filepath.Join(file, "cache"), fstest.MapFS{"a": {}})
	testkit.ErrorContains(t, err, file)
}
