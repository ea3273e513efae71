package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/process"
	"github.com/unified-test-runner/utr/report"
)

// verbatim names the commands that parse their own flags, as mongod and mongos do.
var verbatim = []string{"mongod", "mongos"}

func mongodCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:    "mongod [OPTIONS OF MONGOD]",
		Short:  "Run a mongod stand-in",
		Hidden: true,
		Long: `Runs one process of an embedded deployment with the part of mongod's command line
that mongo-orchestration and utr run --local use. Data is kept in memory.
docs/embedded.md lists the differences; utr release creates a folder with
bin/mongod and bin/mongos.

The server version comes from --utrServerVersion or from
$` + process.EnvVersion + `. utr mongod --help lists the options.`,
		Example: `# a standalone with fail points
utr mongod --port 27017 --setParameter enableTestCommands=1
# a member that waits for replSetInitiate
utr mongod --port 27017 --replSet rs0 --dbpath data`,
		DisableFlagParsing: true,
	}, func(*flags) action { return func(ctx context.Context, c *call) error { return c.process(ctx, false) } })
}

func mongosCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:    "mongos [OPTIONS OF MONGOS]",
		Short:  "Run a mongos stand-in",
		Hidden: true,
		Long: `Runs a router of embedded deployments, as utr mongod runs a mongod. The config
servers of --configdb must also be utr mongod processes.`,
		Example: `# a router, as soon as the config server is initiated
utr mongos --port 27017 --configdb config/localhost:27019`,
		DisableFlagParsing: true,
	}, func(*flags) action { return func(ctx context.Context, c *call) error { return c.process(ctx, true) } })
}

func (c *call) process(ctx context.Context, mongos bool) error {
	if !mongos && slices.Equal(c.paths, []string{process.HostOption}) {
		return process.Host(ctx, c.program.Stdin, c.program.Stdout)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	return exit(process.Run(ctx, mongos, c.paths, process.Environment{
		Stdout: c.program.Stdout, Stderr: c.errors, Getenv: c.env, Self: self,
	}))
}

func releaseCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:    "release DIR",
		Short:  "Create a folder with mongod and mongos stand-ins",
		Hidden: true,
		Long: `Writes bin/mongod and bin/mongos, two small scripts that start utr mongod and utr
mongos of this binary. DIR is then a MongoDB release for programs that require one:
mongo-orchestration, whose configuration maps version names to bin folders, and utr run
--local.`,
		Example: `# then /tmp/release/bin/mongod --version
utr release /tmp/release
# a release that acts as MongoDB 7.0
utr release /tmp/release-7.0 --server-version 7.0`,
		Args:              arguments(1, 1, "a folder"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}, func(f *flags) action {
		version := embedded.DefaultVersion
		choice(f, &version, "server-version", "VERSION", "version that the servers report", embedded.Versions()...)
		return func(_ context.Context, c *call) error {
			if c.paths[0] == "" {
				return usage("requires a folder")
			}
			bin := filepath.Join(c.paths[0], "bin")
			if err := release(bin, version); err != nil {
				return fmt.Errorf("cannot create a release: %w", err)
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

func releaseScript(self, name, version string) string {
	return fmt.Sprintf("#!/bin/sh\n# Made by utr release: %s of MongoDB %s, by utr.\n%s=%s\nexport %s\nexec %s \"$@\"\n",
		name, version, process.EnvVersion, version, process.EnvVersion, report.Quote([]string{self, name}))
}
