//go:build unix

package server

import (
	"net/netip"
	"syscall"
)

// ReservePort reserves the port of a killed server without listening, so that clients do not mistake another process
// for it. If that fails, the port stays free.
func ReservePort(address string) (release func()) {
	release = func() {}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return release
	}
	family, place := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: int(at.Port()),
		Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, place = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	syscall.ForkLock.RLock() // child processes must not inherit the socket
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err != nil {
		return release
	}
	syscall.CloseOnExec(fd)
	// Old connections of the server still use the port.
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	_ = syscall.Bind(fd, place)
	return func() { _ = syscall.Close(fd) }
}
