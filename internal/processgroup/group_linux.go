package processgroup

import "syscall"

// dieWithParent has a child killed when the thread that starts it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
