package architecture

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The program does not contain packages that only tests or contributors need.
func TestShipped(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../../cmd/utr").Output()
	testkit.Check(t, err)
	testkit.Contains(t, string(out), module+"/program\n")
	for _, row := range []struct{ reason, unwanted string }{
		{"tests start the fake mongod", module + "/embedded/internal/fakemongod"},
		{"helpers for tests", module + "/internal/testkit"},
		{"only contributors run them", module + "/internal/tools"},
		{"packaging writes man pages", "github.com/spf13/cobra/doc"},
		{"man pages are made of Markdown", "github.com/cpuguy83/go-md2man"},
		{"man pages are made of Markdown", "github.com/russross/blackfriday"},
		{"tests compare values", "github.com/google/go-cmp"},
	} {
		for name := range strings.Lines(string(out)) {
			name = strings.TrimSpace(name)
			testkit.Equal(t, row.reason+": the program contains "+name,
				name == row.unwanted || strings.HasPrefix(name, row.unwanted+"/"), false)
		}
	}
}
