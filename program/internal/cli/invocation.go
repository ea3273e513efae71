package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/specs"
)

type action func(ctx context.Context, c *invocation) error

// command completes a cobra command. declare adds the flags and returns the action.
func (c *invocation) command(command *cobra.Command, declare func(*flags) action) *cobra.Command {
	f := newFlags(c, command)
	act := declare(f)
	if !strings.Contains(command.Use, " ") {
		command.Args = arguments(0, 0, "")
	}
	command.RunE = func(_ *cobra.Command, paths []string) error {
		c.paths = paths
		err, ctx := f.check(), command.Context()
		if err == nil {
			err = act(ctx, c)
		}
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
	return command
}

type invocation struct {
	program    *Program
	paths      []string // arguments that are not flags
	secrets    redactor
	errors     io.Writer // standard error, redacted
	engines    string    // the value of --engines
	transcript io.Writer // of the messages of engines in other processes, if not nil
	parsed     bool      // flags and the number of arguments are valid
	helpErr    error     // the error of printing help
	reportOnly bool      // standard output is for a report, and text goes to standard error
	verbose    bool      // names all files that are not suites, and all collections; quotes an adapter without its driver
	statusLine bool      // the last line of the terminal shows the progress
	screen     sync.Mutex
}

// out is where text for people goes. A message can be printed at any time, so writes are whole.
func (c *invocation) out() io.Writer {
	if c.reportOnly {
		return c.errors
	}
	return &whole{&c.screen, c.program.Stdout}
}

type whole struct {
	*sync.Mutex
	io.Writer
}

// errReaderGone is the error of standard output whose reader closed it, as head does. It ends a command without a
// message.
var errReaderGone = errors.New("the reader closed standard output")

func (w *whole) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	n, err := w.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errReaderGone
	}
	return n, err
}

func (c *invocation) env(name string) string { return c.program.Getenv(name) }

// Main runs a command line, without the program name, and returns the exit code. Canceling ctx interrupts it.
func (p *Program) Main(ctx context.Context, args []string) int {
	c := &invocation{program: p}
	args, err := p.expand(args)
	c.secrets = redactor{secret.NewKeeper(append(slices.Clone(args), c.env(envURI), c.env(envSingleURI))...)}
	c.errors = c.secrets.Writer(p.Stderr)
	command := c.root()
	if err == nil {
		args = append([]string{}, joinSeeds(args)...) // cobra reads os.Args for nil
		if len(args) > 0 && args[0] == "--version" || slices.Equal(args, []string{"-v"}) {
			args[0] = "version"
		}
		command.SetArgs(args)
		command, err = command.ExecuteContextC(ctx)
		if err == nil {
			err = c.helpErr
		} else if !c.parsed && exitOf(err) == nil {
			err = usage("%w", err)
		}
	}
	e := exitOf(err)
	if errors.Is(err, errReaderGone) {
		return ExitBroken
	}
	if err == nil || e != nil && e.err == nil {
		return codeOf(err)
	}
	message, see := strings.TrimSpace(err.Error()), ""
	if e != nil && e.hint {
		_, name, _ := strings.Cut(command.CommandPath(), " ")
		message = strings.TrimPrefix(name+": "+message, ": ")
		see = strings.TrimSpace("See: utr help "+name) + "\n"
	}
	_, _ = fmt.Fprintf(c.errors, "utr: %s\n%s", message, see)
	return codeOf(err)
}

// argumentsFrom is the prefix of an argument, directly after the command, that names a file with more arguments, or
// standard input. It keeps secrets out of process listings.
const argumentsFrom = "@"

// expand appends the arguments of a file, one per line. A line that begins with a quotation mark is a JSON string.
func (p *Program) expand(args []string) ([]string, error) {
	if len(args) < 2 || !strings.HasPrefix(args[1], argumentsFrom) {
		return args, nil
	}
	name := strings.TrimPrefix(args[1], argumentsFrom)
	read := func() ([]byte, error) { return os.ReadFile(name) }
	if name == specs.Stdin {
		read = func() ([]byte, error) { return io.ReadAll(p.Stdin) }
	}
	args = slices.Delete(slices.Clone(args), 1, 2)
	text, err := read()
	if err != nil {
		return args, usage("arguments: %w", err)
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) { // the byte order mark of an editor
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			continue
		}
		if strings.HasPrefix(line, `"`) && json.Unmarshal([]byte(line), &line) != nil {
			return args, usage("arguments: a line that begins with a quotation mark is not a JSON string")
		}
		args = append(args, line)
	}
	return args, nil
}
