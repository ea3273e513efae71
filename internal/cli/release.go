package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/process"
)

func releaseCommand() *command {
	return &command{
		name:      "release",
		summary:   "make a folder with bin/mongod and bin/mongos that are this program",
		arguments: "DIR",
		details: `Writes two small programs that start utr mongod and utr mongos of this very
binary, so that DIR is a release of MongoDB to programs that want one:
mongo-orchestration (its configuration maps names of versions to bin folders)
and utr run --local.`,
		examples: []example{
			{"utr release /tmp/release", "then /tmp/release/bin/mongod --version"},
			{"utr release /tmp/release-7.0 --server-version 7.0", "a release that plays MongoDB 7.0"},
		},
		declare: func(f *flags) action {
			version := f.choice("server-version", embedded.DefaultVersion, "version that is played (default "+embedded.DefaultVersion+")", embedded.Versions()...)
			return func(_ context.Context, c *call) error {
				if len(c.paths) != 1 || c.paths[0] == "" {
					return usage("release: name one folder")
				}
				return c.release(c.paths[0], *version)
			}
		},
	}
}

func (c *call) release(dir, version string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("cannot make a release: %w", err)
	}
	for _, name := range []string{"mongod", "mongos"} {
		path := filepath.Join(bin, name)
		if err := os.WriteFile(path, []byte(releaseScript(self, name, version)), 0o755); err != nil {
			return fmt.Errorf("cannot make a release: %w", err)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			return fmt.Errorf("cannot make a release: %w", err)
		}
	}
	return c.print(bin + "\n")
}

// releaseScript is one program of a release.
func releaseScript(self, name, version string) string {
	return fmt.Sprintf("#!/bin/sh\n# Made by utr release: %s of MongoDB %s, played by utr.\n%s=%s\nexport %s\nexec %s %s \"$@\"\n",
		name, version, process.EnvVersion, version, process.EnvVersion, quoteShell(self), name)
}

// quoteShell makes one word of a text.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
