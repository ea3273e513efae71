package local

import "time"

// What other ways of running clusters on this machine use of this one.

// ReadLogs gives the lines of some logs from one time to another, oldest
// first. Paths are by server, as host:port; what cannot be read is left out.
func ReadLogs(paths map[string]string, from, to time.Time) []Line {
	var lists [][]Line
	for server, path := range paths {
		lists = append(lists, linesOf(path, server, from, to))
	}
	return merged(lists)
}

// WriteCertificates makes an authority and a certificate for the loopback
// interface that it has signed, in ca.pem and server.pem of a folder; the
// latter holds the key as well.
func WriteCertificates(folder string) error {
	_, err := writeCertificates(folder)
	return err
}

// Balancer hands TCP connections to mongoses in turn, with the header of the
// PROXY protocol that their loadBalancerPort wants.
type Balancer struct{ inner *balancer }

// NewBalancer listens on a free port of the loopback interface. Targets are
// the mongoses' ports for load balancers, as host:port.
func NewBalancer(targets []string) (*Balancer, error) {
	inner, err := newBalancer(targets)
	if err != nil {
		return nil, err
	}
	return &Balancer{inner}, nil
}

// Address is where it listens, as host:port.
func (b *Balancer) Address() string { return b.inner.address() }

// Close breaks all connections and waits until nothing is left.
func (b *Balancer) Close() { b.inner.close() }
