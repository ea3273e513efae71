// Package acceptance holds the tests of all parts together: suites that run
// through an engine on embedded deployments, as a whole and in processes of
// their own. Package sweep runs more of them without the race detector, soak/suites
// all of them.
package acceptance

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/cli"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
)

// A quarter of the official suites passes, with the race detector. Package sweep runs all of them without it.
func TestOfficialSuites(t *testing.T) { bench.OfficialPass(t, 4) }

// A small share of our own suites passes, with the race detector. Package sweep runs more of them without it.
func TestOwnSuites(t *testing.T) { bench.OwnPass(t, 64) }

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestReadmeShowsAFailure$ .

// chance is what differs from run to run in the text of a failure: addresses,
// connections, and all events but those of find.
var chance = []struct {
	in  *regexp.Regexp
	out string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+(\[-\d+\])?`), "HOST"},
	{regexp.MustCompile(`(?m)^ +\d+ (command\w+ HOST demo\.find )connection HOST `), "      $1"},
	{regexp.MustCompile(`(?m)^ +(\d+ \w+Event|… \d+ heartbeat).*\n`), ""},
	{regexp.MustCompile(`( network connection)\(HOST\) .*`), "$1 …"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	{regexp.MustCompile("\u00a0"), " "},
}

// README shows what utr says about its failing suite. UTR_UPDATE=1 writes it anew.
func TestReadmeShowsAFailure(t *testing.T) {
	t.Chdir(testkit.Root(t))
	var out bytes.Buffer
	p := cli.New()
	p.Stdin, p.Stdout, p.Stderr, p.Getenv = strings.NewReader(""), &out, &out, func(string) string { return "" }
	testkit.Equal(t, "exit code", p.Main(t.Context(), []string{"run", "docs/find.yml"}), 1)
	text := out.String()
	for _, c := range chance {
		text = c.in.ReplaceAllString(text, c.out)
	}
	before, rest, found := strings.Cut(testkit.Read(t, "README.md"), "$ utr run docs/find.yml\n")
	shown, after, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md does not run docs/find.yml")
	}
	if os.Getenv("UTR_UPDATE") == "1" {
		testkit.Check(t, os.WriteFile("README.md", []byte(before+"$ utr run docs/find.yml\n"+text+"```"+after), 0o644))
	} else {
		testkit.Same(t, "README.md is stale: `go generate ./internal/acceptance` writes it anew", shown, text)
	}
}
