package local

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"

	"github.com/unified-test-runner/utr/internal/certificate"
)

// The files of WriteCertificates, in PEM form.
const (
	caFile     = "ca.pem"
	serverFile = "server.pem" // certificate and key
)

// WriteCertificates writes an authority and a certificate for the loopback interface
// into a folder, and gives what a client needs to trust it.
func WriteCertificates(folder string) (*tls.Config, error) {
	made, err := certificate.New(address)
	if err != nil {
		return nil, err
	}
	return certificate.Trust(made.CA), errors.Join(
		os.WriteFile(filepath.Join(folder, caFile), made.CA, 0o600),
		os.WriteFile(filepath.Join(folder, serverFile), made.Server, 0o600))
}
