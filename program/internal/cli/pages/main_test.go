package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/cli"
)

func TestCommandsPage(t *testing.T) {
	page := testkit.Read(t, "../../../../docs/commands.md")
	testkit.Same(t, "docs/commands.md is stale: make generate", page, commands(cli.Root()))
}

// There is a man page for each command except help.
func TestMan(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	testkit.Check(t, write([]string{"man", folder}))
	for _, c := range cli.Root().Commands() {
		if c.Name() != "help" {
			testkit.Contains(t, testkit.Read(t, filepath.Join(folder, "utr-"+c.Name()+".1")),
				`.TH "UTR-`+strings.ToUpper(c.Name())+`"`)
		}
	}
	for _, args := range [][]string{nil, {"man"}, {"women", folder}} {
		testkit.ErrorContains(t, write(args), "usage: pages commands FILE")
	}
}
