//go:build unix && !linux

package processgroup

import "syscall"

// dieWithParent does nothing: these systems cannot do that.
func dieWithParent(*syscall.SysProcAttr) {}
