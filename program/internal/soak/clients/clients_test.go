// Package clients runs every client of internal/testkit/clients in every setting.
package clients

import (
	"os"
	"os/exec"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestEveryClientInEverySetting(t *testing.T) {
	test := exec.Command("go", "test", "-count", "1", "-v", "-run", "^TestClients$", "-timeout", "30m",
		"github.com/unified-test-runner/utr/internal/testkit/clients")
	test.Env = append(os.Environ(), "UTR_TEST_EVERY_CLIENT=1")
	out, err := test.CombinedOutput()
	t.Logf("%s", out)
	testkit.Check(t, err)
}
