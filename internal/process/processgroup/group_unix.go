//go:build unix

package processgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// IsolateInterruptible puts a program that ends on SIGTERM into its own process group: Ctrl-C reaches only this
// process. On Linux, the program gets SIGTERM if this process ends first.
func IsolateInterruptible(c *exec.Cmd) { isolate(c, syscall.SIGTERM) }

// isolate puts a child into its own process group: Ctrl-C reaches only this process, and Kill reaches the child's
// descendants.
func isolate(c *exec.Cmd, onDeath syscall.Signal) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signalOnDeath(c.SysProcAttr, onDeath)
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
