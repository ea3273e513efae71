//go:build !unix

package process

import "syscall"

func newSession() *syscall.SysProcAttr { return nil }
