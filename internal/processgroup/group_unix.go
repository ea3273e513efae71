//go:build unix

package processgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Isolate puts a child into its own process group: Ctrl-C reaches only this process, and Kill reaches the
// child's descendants.
func Isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(c.SysProcAttr)
}

// Exists reports whether any process of a child's group still exists.
func Exists(p *os.Process) bool { return !errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH) }

// Kill kills a child and its descendants. The error is os.ErrProcessDone if none exists any more.
func Kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
