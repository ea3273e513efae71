//go:build unix

package process

import (
	"os"
	"syscall"
)

// apart gives a child a session of its own, so that signals to the group of its
// parent do not reach it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lock takes a file for this process alone, until it is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
