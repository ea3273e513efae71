// Package acceptance tests all parts together: it runs suites through an engine on
// embedded deployments, in this process and in others. Package sweep runs more suites
// without the race detector; soak/suites runs all of them.
package acceptance

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/cli"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
)

// A quarter of the official suites pass.
func TestOfficialSuites(t *testing.T) { suitetest.OfficialPass(t) }

// A small sample of our own suites passes.
func TestOwnSuites(t *testing.T) { suitetest.OwnPass(t, 64) }

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestReadmeShowsAFailure$ .

// README.md shows the output of utr for its failing suite. UTR_UPDATE=1 updates it.
func TestReadmeShowsAFailure(t *testing.T) {
	t.Chdir(testkit.Root(t))
	var out bytes.Buffer
	p := cli.New()
	p.Stdin, p.Stdout, p.Stderr, p.Getenv = strings.NewReader(""), &out, &out, func(string) string { return "" }
	testkit.Equal(t, "exit code", p.Main(t.Context(), []string{"run", "docs/examples/find.yml"}), 1)
	text := out.String()
	testkit.Equal(t, "an address", strings.Contains(text, "127.0.0.1"), false)
	before, rest, found := strings.Cut(testkit.Read(t, "README.md"), "$ utr run docs/examples/find.yml\n")
	shown, after, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md does not run docs/examples/find.yml")
	}
	if os.Getenv("UTR_UPDATE") == "1" {
		testkit.Check(t, os.WriteFile("README.md", []byte(before+"$ utr run docs/examples/find.yml\n"+text+"```"+after),
			0o644))
	} else {
		testkit.Same(t, "README.md is out of date: run `go generate ./internal/acceptance`", shown, text)
	}
}
