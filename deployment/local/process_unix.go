//go:build unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own: a Ctrl-C reaches us
// alone, and a kill all that the child started.
func isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(c.SysProcAttr)
}

// groupIsThere reports whether something of a group is left.
func groupIsThere(p *os.Process) bool { return !errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH) }

// killGroup ends a child and all that it started.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
