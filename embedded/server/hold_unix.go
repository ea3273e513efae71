//go:build unix

package server

import (
	"net/netip"
	"syscall"
)

// hold keeps the port of a server that is down, as clients that look for it could take
// another process on its port for it. Nobody listens there: connections are refused.
// The port is free if it could not be had.
func hold(address string) (release func()) {
	release = func() {}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return release
	}
	family, place := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, place = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	syscall.ForkLock.RLock() // a program that starts now must not inherit it
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err != nil {
		return release
	}
	syscall.CloseOnExec(fd)
	// The server's connections still use the port.
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	_ = syscall.Bind(fd, place)
	return func() { _ = syscall.Close(fd) }
}
