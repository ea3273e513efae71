//go:build unix

package main

import "syscall"

// newSession starts a child in a new session, so that signals to the parent's process group do not reach it.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
