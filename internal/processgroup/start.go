// Package processgroup starts processes that are killed together with their descendants: on request and, where the
// system supports it, when this process ends.
package processgroup

import (
	"os/exec"
	"runtime"
)

// Start starts a program in its own process group and calls attend with the resulting error in another goroutine.
// attend should wait for the program: on Linux a child is killed when the thread that started it ends, and that
// thread lives until attend returns.
func Start(c *exec.Cmd, attend func(err error)) {
	Isolate(c)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		attend(c.Start())
	}()
}
