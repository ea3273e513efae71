// Package processgroup starts processes that are killed together with their descendants: on request and, where the
// system supports it, when this process ends.
package processgroup

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a program in its own process group and calls attend with the resulting error in another goroutine.
// attend should wait for the program: on Linux, a child is killed when the thread that started it ends, and that thread
// ends when attend returns.
func Start(c *exec.Cmd, attend func(err error)) {
	isolate(c, syscall.SIGKILL)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		attend(c.Start())
	}()
}

// Run starts a command in a group of its own, and waits for it as exec.Cmd.Run does. When the command or ctx ends, all
// processes of the group are killed. The error is the command's, or the cause of ctx.
func Run(ctx context.Context, cmd *exec.Cmd) (err error) {
	started, ended := make(chan struct{}), make(chan struct{})
	Start(cmd, func(failed error) {
		close(started)
		if err = failed; err == nil {
			err = cmd.Wait()
			_ = Kill(cmd.Process)
		}
		close(ended)
	})
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		<-started
		if cmd.Process != nil {
			_ = Kill(cmd.Process)
		}
		<-ended
		return context.Cause(ctx)
	}
}
