//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used returns the CPU time of this process on all cores, in the program and in the kernel, without its children.
func Used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
