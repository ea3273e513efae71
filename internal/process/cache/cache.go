// Package cache keeps files for later runs of the same user, below one folder.
package cache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// EnvDir is the environment variable with the cache folder.
const EnvDir = "UTR_CACHE_DIR"

// Dir returns the cache folder: $UTR_CACHE_DIR, or utr in the user's cache folder. It may not exist yet.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the cache folder is unknown: set $%s to a folder: %w", EnvDir, err)
	}
	return filepath.Join(dir, "utr"), nil
}

// Place returns where Unpack writes files: a folder below dir that is named after their names and contents.
func Place(dir string, files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		_, _ = fmt.Fprintf(sum, "%q %d\n%s", name, len(data), data) // a hash returns no error
		return err
	})
	return filepath.Join(dir, fmt.Sprintf("%x", sum.Sum(nil)[:8])), err
}

// Unpack writes files into their Place and returns it, unless they are there already. The folder appears with all of
// them at once, so any number of processes can unpack at the same time.
func Unpack(dir string, files fs.FS) (string, error) {
	place, err := Place(dir, files)
	if err != nil || exists(place) {
		return place, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	half, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	err = errors.Join(os.Chmod(half, 0o755), os.CopyFS(half, files))
	if err == nil {
		err = os.Rename(half, place)
	}
	if err != nil {
		_ = os.RemoveAll(half)
		if exists(place) { // another process was faster
			return place, nil
		}
	}
	return place, err
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
