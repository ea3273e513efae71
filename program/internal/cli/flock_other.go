//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cli

import "os"

// lockFile does nothing on systems without flock.
func lockFile(string) (*os.File, error) { return nil, nil }
