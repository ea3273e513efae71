//go:build !unix

package process

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
