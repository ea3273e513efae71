package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/internal/process/processgroup"
	"github.com/unified-test-runner/utr/runner/blackpipe"
)

type pipe struct {
	timeout time.Duration
	quiet   bool
}

func pipeCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "pipe SCRIPT [-- COMMAND [ARGUMENT...]]",
		Short: "Test an application on a scripted server",
		Long: `Starts a MongoDB server that follows a script: it expects messages, and replies, hangs
up, stalls or sends half a message. Then runs COMMAND with the server's connection string
in $MONGODB_URI. Without COMMAND, prints the connection string, and waits until the script
ends. docs/application/black-pipe.md describes scripts.

Exit codes: 0 the server received the messages of the script, and COMMAND succeeded,
1 it did not, or COMMAND failed, 2 bad usage or invalid script, 3 broken or interrupted.`,
		Example: `# what does the application do when a reply is lost?
utr pipe lost-reply.yml -- python app.py
# with the application in a debugger
utr pipe --timeout 1h lost-reply.yml`,
		Args: arguments(1, unlimited, "a script"),
	}, func(f *flags) action {
		p := &pipe{timeout: time.Minute}
		f.duration(&p.timeout, "timeout", "time limit for the script and COMMAND")
		f.toggle(&p.quiet, "quiet", "do not print the messages received")
		return p.act
	})
}

func (p *pipe) act(ctx context.Context, c *invocation) (err error) {
	text, err := os.ReadFile(c.paths[0])
	if err != nil {
		return invalid(err)
	}
	script, err := blackpipe.ParseScript(c.paths[0], text)
	if err != nil {
		return invalid(err)
	}
	server, err := blackpipe.Listen(script.Options)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	play := script.Play(server, func(line string) {
		if !p.quiet {
			_, _ = fmt.Fprintln(c.errors, line)
		}
	})
	failed := p.runApplication(limited, c, server.URI(), play)
	unexpected := play.End()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case unexpected != nil:
		return &exitError{code: ExitFailed, err: errors.Join(unexpected, failed)}
	}
	return failed
}

// runApplication runs the command, or waits for another application.
func (p *pipe) runApplication(ctx context.Context, c *invocation, uri string, play *blackpipe.Play) error {
	if len(c.paths) == 1 {
		if err := c.print(uri + "\n"); err != nil {
			return err
		}
		select {
		case <-play.Done():
		case <-ctx.Done():
		}
		return nil
	}
	command := exec.Command(c.paths[1], c.paths[2:]...) // killed with its group, below
	command.Env = append(os.Environ(), "MONGODB_URI="+uri)
	command.Stdin, command.Stdout, command.Stderr = c.program.Stdin, c.program.Stdout, c.errors
	command.WaitDelay = time.Second // for children that keep its output open
	err := processgroup.Run(ctx, command)
	failed := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return &exitError{code: ExitFailed, err: fmt.Errorf("%s did not end within %s", c.paths[1], p.timeout)}
	case errors.As(err, &failed):
		return &exitError{code: ExitFailed, err: fmt.Errorf("%s: %w", c.paths[1], err)}
	case errors.Is(err, exec.ErrWaitDelay): // the command succeeded
		return nil
	}
	return err
}
