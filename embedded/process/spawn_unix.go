//go:build unix

package process

import "syscall"

// apart gives a child a session of its own, so that signals to the group of its
// parent do not reach it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
