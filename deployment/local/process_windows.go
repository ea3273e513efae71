package local

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own, which a Ctrl-C does
// not reach.
func isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// groupIsThere: nothing is known of it.
func groupIsThere(*os.Process) bool { return false }

// killGroup ends a child.
func killGroup(p *os.Process) error { return p.Kill() }
