package processgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Isolate puts a child into a process group of its own, which Ctrl-C does
// not reach.
func Isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Exists returns false: Windows does not say what is left of a group.
func Exists(*os.Process) bool { return false }

// Kill ends a child. What it started can go on.
func Kill(p *os.Process) error { return p.Kill() }
