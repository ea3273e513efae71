//go:build unix

package utrtest

import (
	"syscall"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Freeze stops the process with SIGSTOP and waits until it has stopped. The process
// continues at the end of the test, which kills it.
func (u *Process) Freeze() {
	u.t.Helper()
	u.Signal(syscall.SIGSTOP)
	u.t.Cleanup(func() { _ = u.Process.Signal(syscall.SIGCONT) })
	testkit.Until(u.t, "the process has stopped", func() bool {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(u.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err != nil || pid != 0 && !status.Stopped() {
			u.t.Fatalf("the process ended instead: %v", err)
		}
		return pid != 0
	})
}
