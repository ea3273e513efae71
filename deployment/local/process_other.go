//go:build unix && !linux

package local

import "syscall"

// dieWithParent cannot be had: the ledger remembers what a crash leaves.
func dieWithParent(*syscall.SysProcAttr) {}
