package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EnvDir names the environment variable that chooses the state directory.
const EnvDir = "UTR_STATE_DIR"

// EnvParent names the variable with the parent of the state directory, if EnvDir chooses none.
const EnvParent = "XDG_STATE_HOME"

// Dir gives the state directory of utr: $UTR_STATE_DIR, else utr in
// $XDG_STATE_HOME, else utr in the user's cache directory. It need not be there.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	// A relative one is to be ignored (XDG Base Directory Specification).
	if dir := getenv(EnvParent); filepath.IsAbs(dir) {
		return filepath.Join(dir, "utr"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(fmt.Errorf("there is no place to remember what a run creates: name one by $%s", EnvDir), err)
	}
	return filepath.Join(dir, "utr"), nil
}
