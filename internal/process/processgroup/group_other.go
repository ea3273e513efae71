//go:build unix && !linux

package processgroup

import "syscall"

// signalOnDeath does nothing: these systems do not support it.
func signalOnDeath(*syscall.SysProcAttr, syscall.Signal) {}
