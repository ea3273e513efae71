// Package certificate creates short-lived server certificates.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity exceeds the lifetime of any test cluster.
const validity = 30 * 24 * time.Hour

// Pair is a certificate authority and a certificate that it has signed, in PEM form.
type Pair struct {
	CA     []byte // trusted by clients and servers
	Server []byte // certificate and key of all servers, also for connections between them
}

// New creates a pair for servers on the loopback interface and one other host. The authority's key is discarded.
func New(host string) (p Pair, err error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "utr, for one cluster"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = append(leaf.IPAddresses, ip)
	} else {
		leaf.DNSNames = append(leaf.DNSNames, host)
	}
	authorityKey, errA := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, errB := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(errA, errB); err != nil {
		return p, fmt.Errorf("make a key: %w", err)
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err == nil {
		authority, err = x509.ParseCertificate(ca) // with its key id: the leaf refers to it
	}
	if err != nil {
		return p, fmt.Errorf("make an authority: %w", err)
	}
	server, errA := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), authorityKey)
	secret, errB := x509.MarshalPKCS8PrivateKey(leafKey)
	if err := errors.Join(errA, errB); err != nil {
		return p, fmt.Errorf("make a certificate: %w", err)
	}
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return Pair{CA: text("CERTIFICATE", ca), Server: append(text("CERTIFICATE", server), text("PRIVATE KEY", secret)...)},
		nil
}

// The files of Write, in PEM form.
const (
	CAFile     = "ca.pem"
	ServerFile = "server.pem" // certificate and key
)

// Write writes a new pair for the loopback interface into a folder, and returns a TLS configuration that trusts it. It
// creates the folder if necessary.
func Write(folder string) (*tls.Config, error) {
	pair, err := New("localhost")
	if err != nil {
		return nil, err
	}
	return Trust(pair.CA), errors.Join(
		os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, CAFile), pair.CA, 0o600),
		os.WriteFile(filepath.Join(folder, ServerFile), pair.Server, 0o600))
}

// Trust returns a client TLS configuration that trusts only the given authority.
func Trust(ca []byte) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}
