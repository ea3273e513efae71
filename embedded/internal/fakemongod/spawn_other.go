//go:build !unix

package main

import "syscall"

func newSession() *syscall.SysProcAttr { return nil }
