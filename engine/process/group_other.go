//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// apart gives an adapter a process group of its own, so that an interruption from the
// terminal reaches utr alone.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
