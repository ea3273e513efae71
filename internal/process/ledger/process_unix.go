//go:build unix && !linux

package ledger

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// started returns the date and time at which a process started.
func started(pid int) (string, error) {
	ps := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	ps.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	out, err := ps.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(strings.TrimSpace(string(out))) == 0 {
		return "", ErrNoProcess
	}
	if err != nil {
		return "", fmt.Errorf("ps: %w", err)
	}
	state, at, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(state, "Z") {
		return "", ErrNoProcess
	}
	return strings.Join(strings.Fields(at), " "), nil
}

// here returns the machine. Start times distinguish its processes.
func here() (place, machine string) {
	for _, name := range []string{"kern.uuid", "kern.hostuuid", "hw.uuid"} { // macOS and BSDs
		if id, err := exec.Command("sysctl", "-n", name).Output(); err == nil {
			machine = strings.TrimSpace(string(id))
			return machine, machine
		}
	}
	return "", ""
}
