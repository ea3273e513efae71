package processgroup

import "syscall"

// signalOnDeath makes the kernel signal the child when the thread that started it ends.
func signalOnDeath(a *syscall.SysProcAttr, s syscall.Signal) { a.Pdeathsig = s }
