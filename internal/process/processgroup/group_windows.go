package processgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate puts a child into its own process group. Ctrl-C does not reach the child.
func isolate(c *exec.Cmd, _ syscall.Signal) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// IsolateInterruptible does nothing: Windows can interrupt only processes of the same group.
func IsolateInterruptible(*exec.Cmd) {}

// Exists returns false: Windows cannot list a group.
func Exists(*os.Process) bool { return false }

// Kill kills a child, but not its descendants.
func Kill(p *os.Process) error { return p.Kill() }
