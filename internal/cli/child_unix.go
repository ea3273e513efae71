//go:build unix && !linux

package cli

import (
	"os/exec"
	"syscall"
)

// apart puts a child into a process group of its own: an interruption from the
// terminal reaches this program alone, which passes it on once.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
