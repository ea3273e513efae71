package cputime

import (
	"syscall"
	"time"
)

// Used returns the CPU time of this process on all cores, in the program and in the kernel, without its children.
func Used() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	self, _ := syscall.GetCurrentProcess()                                // a constant
	_ = syscall.GetProcessTimes(self, &created, &exited, &kernel, &user)  // cannot fail
	units := int64(kernel.HighDateTime)<<32 + int64(kernel.LowDateTime) + // of 100 ns
		int64(user.HighDateTime)<<32 + int64(user.LowDateTime)
	return time.Duration(100 * units)
}
