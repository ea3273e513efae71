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
	"syscall"

	"github.com/unified-test-runner/utr/internal/secret"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// Program is the configuration of the command line. Main may be called many
// times, also at once if the streams allow it.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks up the environment; nil means that it is empty.
	Getenv func(string) string
	// Terminal gives the columns of standard output, and whether it is a
	// terminal at all. Nil: it is none.
	Terminal func() (columns int, ok bool)
	// Version is the version of this binary.
	Version string
	// Engines are the drivers under test by name.
	Engines map[string]NewEngine
	// Embedded starts deployments in the process.
	Embedded NewSource
	// Cluster uses a deployment that somebody else runs.
	Cluster NewCluster
	// Local starts clusters of binaries of this machine.
	Local NewLocal
	// Orchestration uses clusters of an orchestration service.
	Orchestration NewOrchestration
	// Run runs suites; runner.Run, but in tests.
	Run func(context.Context, []*specs.Suite, runner.Config) (result.Summary, error)
	// Child runs a command line of this program in another process.
	Child RunChild
	// Build tells this program from any other.
	Build func() (string, error)
	// Serve starts an embedded deployment on chosen ports.
	Serve NewServer
}

// command is one row of the table.
type command struct {
	name      string
	summary   string // one line
	arguments string // in the usage line, after the flags
	details   string // paragraphs
	examples  []example
	// words are what the first argument can be, for completion.
	words func() []string
	// verbatim commands read their flags themselves: they are another program's.
	verbatim bool
	// declare adds the command's flags and gives what runs with their values.
	declare func(*flags) action
}

type example struct{ line, what string }

// action runs a command once its flags are read.
type action func(ctx context.Context, c *call) error

// commands is the table, in the order of the usage.
func commands() []*command {
	return []*command{
		runCommand(), matrixCommand(), compareCommand(), diffCommand(), mergeCommand(), validateCommand(), serveCommand(), mongodCommand(), mongosCommand(), releaseCommand(), cleanCommand(), schemaCommand(), explainCommand(), experimentCommand(),
		versionCommand(), helpCommand(), completionCommand(),
	}
}

func find(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// call is the state of one invocation.
type call struct {
	program *Program
	command string   // its name
	paths   []string // arguments that are no flags
	secrets redactor
	errors  io.Writer // standard error, redacted
}

func (c *call) out() io.Writer { return c.program.Stdout }

func (c *call) env(name string) string {
	if c.program.Getenv == nil {
		return ""
	}
	return c.program.Getenv(name)
}

// Main runs a command line, without the program's name, and gives the exit
// code. The end of ctx interrupts a run: it cleans up and says what ran.
func (p *Program) Main(ctx context.Context, args []string) int {
	c := &call{program: p}
	args, err := p.expand(args)
	c.secrets = redactor{secret.NewKeeper(append(slices.Clone(args), c.env(envURI), c.env(envSingleURI))...)}
	c.errors = c.secrets.Writer(p.Stderr)
	if err == nil {
		err = c.dispatch(ctx, args)
	}
	var e *exitError
	if err == nil || (errors.As(err, &e) && e.err == nil) {
		return codeOf(err)
	}
	_, _ = fmt.Fprintf(c.errors, "utr: %s\n", strings.TrimSpace(err.Error()))
	if e != nil && e.hint {
		_, _ = fmt.Fprintln(c.errors, strings.TrimSpace("utr help "+c.command)+" tells more")
	}
	return codeOf(err)
}

// argumentsFrom begins the argument after the command that names a file with more
// arguments, or standard input: what is secret need not be seen in a list of
// processes.
const argumentsFrom = "@"

// expand adds the arguments of a file after the others. They stand one a line; one
// that begins with a quotation mark is a JSON string.
func (p *Program) expand(args []string) ([]string, error) {
	if len(args) < 2 || !strings.HasPrefix(args[1], argumentsFrom) {
		return args, nil
	}
	if c := find(args[0]); c == nil || c.verbatim {
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
	for line := range strings.Lines(string(text)) {
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

func (c *call) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		_, _ = io.WriteString(c.errors, overview())
		return exit(ExitUsage)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	command := find(name)
	if command == nil {
		return usage("%w", unknownCommand(name))
	}
	c.command = name
	f := newFlags()
	act := command.declare(f)
	if command.verbatim {
		c.paths = rest
		return act(ctx, c)
	}
	paths, err := f.parse(rest)
	if errors.Is(err, errHelp) {
		return c.print(command.help())
	}
	if err != nil {
		return usage("%s: %w", command.name, err)
	}
	c.paths = paths
	return act(ctx, c)
}

// unknownCommand is the error for a command that there is not, with the one
// that was meant if that can be told.
func unknownCommand(name string) error {
	if strings.HasPrefix(name, "-") {
		return fmt.Errorf("the first word is a command, such as run; flags such as %s follow it", name)
	}
	if meant := nearest(name, names()); meant != "" {
		return fmt.Errorf("there is no command %q; did you mean %s?", name, meant)
	}
	return fmt.Errorf("there is no command %q", name)
}

// print writes to standard output. That it cannot is an error like any other,
// but that a reader who went away, such as head, is told nothing.
func (c *call) print(text string) error {
	_, err := io.WriteString(c.out(), text)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return exit(ExitBroken)
	case err != nil:
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// load reads suites. The end of ctx is not waited for by a standard input that
// nobody writes to.
func (c *call) load(ctx context.Context, o specs.Options) (*specs.Loaded, error) {
	if contains(c.paths, "") {
		return nil, usage("%s: a path is empty", c.command)
	}
	type answer struct {
		loaded *specs.Loaded
		err    error
	}
	o.Stdin = c.program.Stdin
	read := make(chan answer, 1)
	go func() {
		loaded, err := specs.Load(c.paths, o)
		read <- answer{loaded, err}
	}()
	select {
	case a := <-read:
		return a.loaded, a.err
	case <-ctx.Done():
		return nil, errInterrupted
	}
}

// errInterrupted ends a command that had done nothing yet.
var errInterrupted = errors.New("interrupted")

// create opens a report file.
func create(name string) (*os.File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("cannot write a report: %w", err)
	}
	return f, nil
}
