//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// apart is for systems with process groups.
func apart(*exec.Cmd) {}

// killGroup kills an adapter.
func killGroup(p *os.Process) { _ = p.Kill() }
