package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// started returns the boot id and the start of a process in ticks since the boot (proc(5), stat and boot_id).
func started(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", ErrNoProcess
	}
	if err != nil {
		return "", err
	}
	// The second field is the name in parentheses. It may contain any characters.
	fields := strings.Fields(string(text)[strings.LastIndex(string(text), ")")+1:])
	const state, start = 0, 19 // fields 3 and 22
	if len(fields) <= start {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", ErrNoProcess
	}
	boot, err := boot()
	if err != nil {
		return "", err
	}
	return boot + "/" + fields[start], nil
}

// boot returns an id of the current boot.
func boot() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// here returns the boot and the PID namespace (pid_namespaces(7)), and the id of the installation (machine-id(5)). Many
// containers do not have the latter.
func here() (place, machine string) {
	id, _ := os.ReadFile("/etc/machine-id")
	machine = strings.TrimSpace(string(id))
	boot, err := boot()
	if err != nil {
		return "", machine
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", machine
	}
	return boot + "/" + space, machine
}
