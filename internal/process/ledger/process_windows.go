package ledger

import (
	"errors"
	"strconv"
	"syscall"
	"unsafe"
)

const (
	queryLimitedInformation = 0x1000
	stillActive             = 259
	errInvalidParameter     = syscall.Errno(87)
	wow64Key                = 0x100 // registry view of 64-bit programs
)

// started returns the time at which a process was created, in units of 100 ns.
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

// here returns the machine. Start times distinguish its processes.
func here() (place, machine string) {
	var key syscall.Handle
	path, value := syscall.StringToUTF16Ptr(`SOFTWARE\Microsoft\Cryptography`), syscall.StringToUTF16Ptr("MachineGuid")
	if err := syscall.RegOpenKeyEx(syscall.HKEY_LOCAL_MACHINE, path, 0, syscall.KEY_READ|wow64Key, &key); err != nil {
		return "", ""
	}
	defer func() { _ = syscall.RegCloseKey(key) }()
	var text [64]uint16
	var kind uint32
	size := uint32(unsafe.Sizeof(text))
	if err := syscall.RegQueryValueEx(key, value, nil, &kind, (*byte)(unsafe.Pointer(&text)), &size); err != nil ||
		kind != syscall.REG_SZ {
		return "", ""
	}
	machine = syscall.UTF16ToString(text[:])
	return machine, machine
}
