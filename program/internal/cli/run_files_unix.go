//go:build unix

package cli

import (
	"math"
	"syscall"
)

// mostFiles returns how many files this process may open, or 0. Go has raised the soft limit to the hard one. Setting
// it again raises it for the programs that this process starts. Otherwise they get the limit that this process got.
func mostFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
