package processgroup

import "syscall"

// dieWithParent asks the kernel to kill the child when the thread that started it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
