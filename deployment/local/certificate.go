package local

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of certificates: a cluster does not live that long.
const validity = 30 * 24 * time.Hour

// certificates are files in PEM form.
type certificates struct {
	ca     string // what everybody trusts
	server string // certificate and key, for all servers: among themselves they are clients, too
}

// writeCertificates makes an authority for one cluster, and a certificate for
// the loopback interface that it has signed. The authority's key is nowhere
// once this returns.
func writeCertificates(folder string) (c certificates, err error) {
	c = certificates{ca: filepath.Join(folder, "ca.pem"), server: filepath.Join(folder, "server.pem")}
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
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, fmt.Errorf("make a key: %w", err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, fmt.Errorf("make a key: %w", err)
	}
	caText, err := sign(authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return c, err
	}
	leafText, err := sign(leaf, authority, &leafKey.PublicKey, authorityKey)
	if err != nil {
		return c, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return c, fmt.Errorf("write a key: %w", err)
	}
	both := append(leafText, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	if err := os.WriteFile(c.ca, caText, 0o600); err != nil {
		return c, err
	}
	return c, os.WriteFile(c.server, both, 0o600)
}

func sign(what, by *x509.Certificate, of crypto.PublicKey, with crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, what, by, of, with)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// pool reads what is to be trusted.
func (c certificates) pool() (*x509.CertPool, error) {
	text, err := os.ReadFile(c.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool, nil
}
