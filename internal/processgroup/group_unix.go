//go:build unix

package processgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Isolate puts a child into a process group of its own: Ctrl-C reaches
// this process alone, and Kill reaches all that the child started.
func Isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(c.SysProcAttr)
}

// Exists reports whether a process of the group of a child is left.
func Exists(p *os.Process) bool { return !errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH) }

// Kill ends a child and all that it started. The error is os.ErrProcessDone if none of
// them is left.
func Kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
