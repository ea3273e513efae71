//go:build !unix

package process

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return nil }

func lock(*os.File) error { return nil }
