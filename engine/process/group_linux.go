package process

import (
	"os/exec"
	"syscall"
)

// apart gives an adapter a process group of its own, so that an interruption from the
// terminal reaches utr alone. An adapter whose parent was killed is killed as well.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
