package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/embedded/process"
)

// verbatim names the commands that read their flags themselves, as mongod and mongos do.
var verbatim = []string{"mongod", "mongos"}

func mongodCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:    "mongod [OPTIONS OF MONGOD]",
		Short:  "Run a mongod stand-in",
		Hidden: true,
		Long: `Runs one process of an embedded deployment with the part of mongod's command line
that mongo-orchestration and utr run --local use. Data is kept in memory.
docs/embedded.md lists the differences; utr release makes a folder with bin/mongod
and bin/mongos.

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
servers that --configdb names must be utr mongod processes as well.`,
		Example: `# a router, as soon as the config server is initiated
utr mongos --port 27017 --configdb config/localhost:27019`,
		DisableFlagParsing: true,
	}, func(*flags) action { return func(ctx context.Context, c *call) error { return c.process(ctx, true) } })
}

// process runs a stand-in for mongod or mongos, and exits with its code.
func (c *call) process(ctx context.Context, mongos bool) error {
	if !mongos && slices.Equal(c.paths, []string{process.HostOption}) {
		return process.Host(ctx, c.program.Stdin, c.program.Stdout)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	return exit(process.Run(ctx, mongos, c.paths, process.Environment{
		Stdout: c.program.Stdout, Stderr: c.errors, Getenv: c.env, PID: os.Getpid(), Self: []string{self},
	}))
}
