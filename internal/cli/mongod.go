package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/unified-test-runner/utr/embedded/process"
)

func mongodCommand() *command {
	return &command{
		name:      "mongod",
		summary:   "be a mongod: one process of an embedded deployment",
		arguments: "[OPTIONS OF MONGOD]",
		details: `Plays mongod with an embedded server: the same command line, configuration
files, commands, log and exit codes, so that programs that start mongod can
start this. Data live in memory. docs/embedded.md tells what is different; utr
release makes a folder of it that has bin/mongod and bin/mongos.

The version that is played comes from --utrServerVersion or from
$` + process.EnvVersion + `. utr mongod --help lists the options.`,
		examples: []example{
			{"utr mongod --port 27017 --setParameter enableTestCommands=1", "a standalone with fail points"},
			{"utr mongod --port 27017 --replSet rs0 --dbpath data", "a member that waits for replSetInitiate"},
		},
		verbatim: true,
		declare:  func(*flags) action { return func(ctx context.Context, c *call) error { return c.process(ctx, false) } },
	}
}

func mongosCommand() *command {
	return &command{
		name:      "mongos",
		summary:   "be a mongos: one router of embedded deployments",
		arguments: "[OPTIONS OF MONGOS]",
		details: `Plays mongos, as utr mongod plays mongod. The config servers that --configdb
names have to be of utr mongod, too.`,
		examples: []example{
			{"utr mongos --port 27017 --configdb config/localhost:27019", "a router, as soon as the config server is initiated"},
		},
		verbatim: true,
		declare:  func(*flags) action { return func(ctx context.Context, c *call) error { return c.process(ctx, true) } },
	}
}

// process plays mongod or mongos; the exit code is theirs.
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
