// Package godriver contains the code that depends on internals of the Go driver, go.mongodb.org/mongo-driver/v2:
// information that its topology exposes only through its callers, messages and error texts. The tests fail if the
// version of the driver differs from Tested.
//
// Importing this package lowers the minimum server version to 4.2, the oldest that the specifications cover. The driver
// requires 4.4, through two exported variables. 4.2 has the same protocol. Other code checks the wire version for
// features that it lacks.
package godriver

import (
	"context"
	"errors"
	"net"
	"regexp"
	"runtime"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// Tested is the version of the driver that this package was tried on.
const Tested = "2.10.0"

func init() {
	topology.SupportedWireVersions.Min = 8
	topology.MinSupportedMongoDBVersion = "4.2"
}

// Use is the purpose of a connection of a topology.
type Use uint8

// The uses.
const (
	RoundTrips Use = iota // the measurement of round trip times
	Monitor
	Pool
)

// DialedFor returns the use of a connection, if the dialer of a topology calls it. The topology has one dialer for all
// connections, and only its callers distinguish them.
func DialedFor() Use {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case strings.HasSuffix(f.Function, "topology.(*Server).setupHeartbeatConnection"):
			return Monitor
		case strings.Contains(f.Function, "topology.(*pool)."):
			return Pool
		}
	}
	return RoundTrips
}

// Unlabelled is an error of a connection that does not mean that the server is overloaded. The topology treats it as a
// TLS alert of the peer.
type Unlabelled struct{ error }

// Unlabel returns an error without the labels that the topology would add.
func Unlabel(err error) Unlabelled { return Unlabelled{err} }

// Unwrap returns the error.
func (u Unlabelled) Unwrap() error { return u.error }

// As implements the interface of errors.As.
func (u Unlabelled) As(target any) bool {
	op, ok := target.(**net.OpError)
	if ok {
		*op = &net.OpError{Op: "remote error", Err: u.error}
	}
	return ok
}

var counts = regexp.MustCompile(`maxPoolSize: \d+, connections in use by cursors: .*other operations: \d+`)

// CheckOutMessage returns the message of a check-out error. Behind a load balancer, a timeout has the text of Load
// Balancers, "Connection Tracking". The driver reports the counts only in a text of its own.
func CheckOutMessage(err error) string {
	if in := counts.FindString(err.Error()); in != "" && errors.Is(err, context.DeadlineExceeded) {
		return "Timeout waiting for connection from the connection pool. " + in
	}
	return err.Error()
}
