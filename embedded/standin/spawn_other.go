//go:build !unix

package standin

import "syscall"

func newSession() *syscall.SysProcAttr { return nil }
