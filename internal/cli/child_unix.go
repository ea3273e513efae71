//go:build unix && !linux

package cli

import (
	"os/exec"
	"syscall"
)

// setProcessGroup puts a child into its own process group, so that an interrupt from the terminal reaches only this
// process, which forwards it once.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
