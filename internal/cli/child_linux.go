package cli

import (
	"os/exec"
	"syscall"
)

// apart puts a child into a process group of its own: an interruption from the
// terminal reaches this program alone, which passes it on once. A child whose
// parent was killed is interrupted as well.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
