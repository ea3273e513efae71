package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// validity of certificates: a cluster does not live that long.
const validity = 30 * 24 * time.Hour

// The files of WriteCertificates, in PEM form.
const (
	caFile     = "ca.pem"     // what everybody trusts
	serverFile = "server.pem" // certificate and key of all servers, which are clients among themselves
)

// WriteCertificates makes an authority, which it gives, and a certificate for the
// loopback interface that it has signed, in ca.pem and server.pem of a folder; the
// latter holds the key as well. The authority's key is nowhere once this returns.
func WriteCertificates(folder string) (*x509.Certificate, error) {
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
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	authorityKey, errA := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, errB := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(errA, errB); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	ca, errA := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	server, errB := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), authorityKey)
	secret, errC := x509.MarshalPKCS8PrivateKey(leafKey)
	if err := errors.Join(errA, errB, errC); err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	both := append(text("CERTIFICATE", server), text("PRIVATE KEY", secret)...)
	errA = os.WriteFile(filepath.Join(folder, caFile), text("CERTIFICATE", ca), 0o600)
	errB = os.WriteFile(filepath.Join(folder, serverFile), both, 0o600)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(ca)
}
