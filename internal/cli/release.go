package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/process"
	"github.com/unified-test-runner/utr/report"
)

func releaseCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:    "release DIR",
		Short:  "Make a folder with mongod and mongos stand-ins",
		Hidden: true,
		Long: `Writes bin/mongod and bin/mongos, two small scripts that start utr mongod and utr
mongos of this binary, so that DIR is a release of MongoDB to programs that
require one: mongo-orchestration (its configuration maps names of versions to bin
folders) and utr run --local.`,
		Example: `# then /tmp/release/bin/mongod --version
utr release /tmp/release
# a release that acts as MongoDB 7.0
utr release /tmp/release-7.0 --server-version 7.0`,
		Args:              arguments(1, 1, "a folder"),
		ValidArgsFunction: folders,
	}, func(f *flags) action {
		version := embedded.DefaultVersion
		choice(f, &version, "server-version", "VERSION", "version that the servers report", embedded.Versions()...)
		return func(_ context.Context, c *call) error {
			if c.paths[0] == "" {
				return usage("requires a folder")
			}
			bin := filepath.Join(c.paths[0], "bin")
			if err := release(bin, version); err != nil {
				return fmt.Errorf("cannot make a release: %w", err)
			}
			return c.print(bin + "\n")
		}
	})
}

func release(bin, version string) error {
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(bin, 0o755)
	}
	for _, name := range []string{"mongod", "mongos"} {
		path := filepath.Join(bin, name)
		if err == nil {
			err = os.WriteFile(path, []byte(releaseScript(self, name, version)), 0o755)
		}
		if err == nil {
			err = os.Chmod(path, 0o755)
		}
	}
	return err
}

// releaseScript is one program of a release.
func releaseScript(self, name, version string) string {
	return fmt.Sprintf("#!/bin/sh\n# Made by utr release: %s of MongoDB %s, by utr.\n%s=%s\nexport %s\nexec %s \"$@\"\n",
		name, version, process.EnvVersion, version, process.EnvVersion, report.Quote([]string{self, name}))
}
