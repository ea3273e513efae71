package ledger

import (
	"errors"
	"strconv"
	"syscall"
)

const (
	queryLimitedInformation = 0x1000
	stillActive             = 259
	errInvalidParameter     = syscall.Errno(87)
)

// started gives the time at which a process was created, in units of 100 ns.
func started(pid int) (string, error) {
	h, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if errors.Is(err, errInvalidParameter) {
		return "", ErrNoProcess
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = syscall.CloseHandle(h) }()
	var code uint32
	if err := syscall.GetExitCodeProcess(h, &code); err != nil {
		return "", err
	}
	if code != stillActive {
		return "", ErrNoProcess
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(h, &created, &ended, &kernel, &user); err != nil {
		return "", err
	}
	return strconv.FormatInt(created.Nanoseconds(), 10), nil
}

// here is not known: the start of the machine is none of what this system tells
// in one word.
func here() string { return "" }
