package cli

import (
	"os/exec"
	"syscall"
)

// setProcessGroup puts a child into its own process group, so that an interrupt from the terminal reaches only this
// process, which forwards it once. If this process is killed, the child is interrupted.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
