//go:build unix

package process

import (
	"os"
	"syscall"
)

// killGroup kills an adapter and what it started.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
