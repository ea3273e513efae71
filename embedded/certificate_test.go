package embedded

import (
	"crypto/x509"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestCertificateNamesTheHost(t *testing.T) {
	for _, host := range []string{"10.1.2.3", "db.example", "127.0.0.1", "localhost"} {
		config, _, err := certificate(host)
		testkit.Check(t, err)
		leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
		testkit.Check(t, err)
		if err := leaf.VerifyHostname(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
