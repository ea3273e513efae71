// Package processgroup starts programs that end together with what they start: on
// request, and where the system can do that, with this process.
package processgroup

import (
	"os/exec"
	"runtime"
)

// Start starts a program in a process group of its own, and calls attend with the
// error of that in another goroutine. attend should wait for the program: a child
// that is to die with its parent dies with the thread that started it, which stays
// until attend returns.
func Start(c *exec.Cmd, attend func(err error)) {
	Isolate(c)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		attend(c.Start())
	}()
}
