package certificate

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestCertificateNamesTheHost(t *testing.T) {
	for _, host := range []string{"10.1.2.3", "db.example", "127.0.0.1", "localhost"} {
		p, err := New(host)
		testkit.Check(t, err)
		block, _ := pem.Decode(p.Server)
		leaf, err := x509.ParseCertificate(block.Bytes)
		testkit.Check(t, err)
		_, err = leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: Trust(p.CA).RootCAs})
		testkit.Check(t, err)
	}
}
