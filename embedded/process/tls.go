package process

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// config reads the certificates of a server, nil if it speaks no TLS.
func (o TLSOptions) config() (*tls.Config, error) {
	if o.Mode == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.CertificateFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate file: %w", err)
	}
	certificate, err := keyPair(data, o.Password)
	if err != nil {
		return nil, fmt.Errorf("cannot use certificate file %s: %w", o.CertificateFile, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if o.CAFile == "" {
		return c, nil
	}
	authority, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read CA file: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("CA file %s: there is no certificate in it", o.CAFile)
	}
	c.ClientAuth = o.clients()
	return c, nil
}

// clients is what is asked of clients where there is a CA file.
func (o TLSOptions) clients() tls.ClientAuthType {
	switch {
	case o.Invalid && o.Weak:
		return tls.RequestClientCert
	case o.Invalid:
		return tls.RequireAnyClientCert
	case o.Weak:
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}

// keyPair reads a file with a certificate and its key, in any order.
func keyPair(data []byte, password string) (tls.Certificate, error) {
	var certificates, key []byte
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, pem.EncodeToMemory(block)...)
			continue
		}
		//lint:ignore SA1019 the form that mongod reads
		if x509.IsEncryptedPEMBlock(block) {
			//lint:ignore SA1019 likewise
			plain, err := x509.DecryptPEMBlock(block, []byte(password))
			if err != nil {
				return tls.Certificate{}, err
			}
			block = &pem.Block{Type: block.Type, Bytes: plain}
		}
		key = append(key, pem.EncodeToMemory(block)...)
	}
	if key == nil {
		return tls.Certificate{}, errors.New("there is no private key in it")
	}
	return tls.X509KeyPair(certificates, key)
}
