package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// Program is the configuration of the command line. Main may be called concurrently if the streams allow it.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Terminal       func() (columns int, ok bool) // whether standard output is a terminal, and its width
	Machine        func() Machine
	Version        string               // of this binary
	Commit         string               // that it was built from, or ""
	Engines        map[string]NewEngine // drivers under test by name
	Child          RunChild
	Build          func() (string, error) // identifies this binary: two builds of the same version differ
	// Open opens a source of deployments. Its options are EmbeddedOptions, ClusterOptions, LocalOptions or
	// OrchestrationOptions of package deployment.
	Open func(ctx context.Context, options any) (deployment.Source, error)
	// Run is runner.Run except in tests.
	Run func(context.Context, []*specs.Suite, runner.Config) (result.Summary, error)
	// Claim is runner.Claim except in tests.
	Claim func(context.Context, []*specs.Suite, runner.Config, bool) error
	// Serve starts an embedded deployment.
	Serve func(context.Context, embedded.Options) (Server, error)
}

// New returns a Program with every engine and deployment of this project. Its environment is empty, and the caller
// sets the streams.
func New() *Program {
	return &Program{
		Getenv:   func(string) string { return "" },
		Terminal: func() (int, bool) { return 0, false },
		Machine:  thisMachine,
		Version:  Version(),
		Commit:   commit(),
		Engines: map[string]NewEngine{
			referenceEngine: func(o reference.Options) (engine.Engine, error) { return reference.New(o) },
			"driver":        withoutOptions("driver", func() (engine.Engine, error) { return driver.New(), nil }),
		},
		Open:  open,
		Serve: func(ctx context.Context, o embedded.Options) (Server, error) { return embedded.Start(ctx, o) },
		Run:   runner.Run,
		Claim: runner.Claim,
		Child: runChild,
		Build: buildID,
	}
}

func open(ctx context.Context, options any) (deployment.Source, error) {
	switch o := options.(type) {
	case deployment.ClusterOptions:
		return deployment.OpenCluster(ctx, o)
	case deployment.OrchestrationOptions:
		return deployment.OpenOrchestration(ctx, o)
	case deployment.LocalOptions:
		return deployment.OpenLocal(ctx, o)
	default:
		return deployment.OpenEmbedded(options.(deployment.EmbeddedOptions))
	}
}

// Version is the version of utr in this binary. That of a build in a checkout names the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/unified-test-runner/utr" {
			return dependency.Version
		}
	}
	return cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
}

// commit is the commit of the checkout in which this binary was built, or "".
func commit() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil || info.Main.Path != "github.com/unified-test-runner/utr" { // another program that contains utr
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// aboutGroup is the title of the command group that includes completion.
const aboutGroup = "About utr:"

type action func(ctx context.Context, c *call) error

// Help lists commands in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// Root returns the commands, for what describes them.
func Root() *cobra.Command { return (&call{program: New()}).root() }

func (c *call) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "utr COMMAND [flags] [arguments]",
		Short:         "Run Unified Test Format suites against MongoDB drivers",
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) { c.parsed = true },
		Args:             unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, _ = io.WriteString(c.errors, Help(cmd))
			return exit(ExitUsage)
		},
	}
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { c.helpErr = c.print(Help(cmd)) })
	root.SetFlagErrorFunc(suggestFlag)
	add := func(title string, commands ...func(*call) *cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, make := range commands {
			command := make(c)
			command.GroupID = title
			root.AddCommand(command)
		}
	}
	add("Suites and reports:", runCommand, matrixCommand, compareCommand, proseCommand, diffCommand, mergeCommand,
		siteCommand, engineGroup,
		newCommand, listCommand, checkSuitesCommand, validateCommand, schemaVersionCommand, convertCommand, fmtCommand, coverageCommand,
		auditCommand)
	add("Deployments:", doctorCommand, serveCommand, pipeCommand, cleanCommand)
	add("Specifications:", specsGroup, schemaCommand, explainCommand, experimentGroup)
	add(aboutGroup, versionCommand)
	root.SetHelpCommand(helpCommand(c))
	root.InitDefaultHelpCmd()
	root.SetCompletionCommandGroupID(aboutGroup)
	root.SetOut(c.out())
	root.SetErr(c.errors)
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Use += " bash|fish|powershell|zsh"
	completion.Short, completion.Long = "Print a completion script for a shell",
		"utr completion SHELL --help describes how to load the script."
	completion.Args = nil // RunE suggests a shell
	completion.RunE = requires("a shell: bash, fish, powershell or zsh")
	return root
}

// command completes a cobra command. declare adds the flags and returns the action.
func (c *call) command(command *cobra.Command, declare func(*flags) action) *cobra.Command {
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

// group returns a command that consists of others. what describes their names.
func group(use, short, what string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, RunE: requires(what)}
	group.AddCommand(commands...)
	return group
}

func commandHint(of *cobra.Command, word string) string {
	return suggest.Hint(word, mapSlice(visible(of), (*cobra.Command).Name))
}

// unknownCommand rejects the name of a command that does not exist.
func unknownCommand(of *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("unknown command %q%s", args[0], commandHint(of, args[0]))
}

func requires(what string) func(*cobra.Command, []string) error {
	return func(of *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("unknown command %q: requires %s%s", args[0], what, commandHint(of, args[0]))
		}
		return usage("requires %s", what)
	}
}

type call struct {
	program    *Program
	paths      []string // arguments that are not flags
	secrets    redactor
	errors     io.Writer // standard error, redacted
	engines    string    // the value of --engines
	transcript io.Writer // of the messages of engines in other processes, if not nil
	parsed     bool      // flags and the number of arguments are valid
	helpErr    error     // the error of printing help
	reportOnly bool      // standard output is for a report, and text goes to standard error
	verbose    bool      // files that are not suites are named, and an adapter without its driver is quoted
	statusLine bool      // the last line of the terminal shows the progress
	screen     sync.Mutex
}

// out is where text for people goes. A message can be printed at any time, so writes are whole.
func (c *call) out() io.Writer {
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

func (c *call) env(name string) string { return c.program.Getenv(name) }

// Main runs a command line, without the program name, and returns the exit code. Canceling ctx interrupts it.
func (p *Program) Main(ctx context.Context, args []string) int {
	c := &call{program: p}
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

// print writes to standard output.
func (c *call) print(text string) error {
	if _, err := io.WriteString(c.out(), text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// conclude prints the final output of a command, which may have failed.
func (c *call) conclude(text string, failed bool) error {
	if err := c.print(text); err != nil || !failed {
		return err
	}
	return exit(ExitFailed)
}

// lines is the output of a command: text, or JSON lines.
type lines struct {
	strings.Builder
	asJSON bool
}

// add adds a record. A nil record is for people only.
func (l *lines) add(record any, format string, args ...any) {
	switch {
	case !l.asJSON:
		fmt.Fprintf(l, format, args...)
	case record != nil:
		l.WriteString(jsonLine(record))
	}
}

// jsonLine formats a value as a line of JSON. Every type here can be marshaled.
func jsonLine(v any) string {
	text, _ := json.Marshal(v)
	return string(text) + "\n"
}

func jsonPage(v any) string {
	text, _ := json.MarshalIndent(v, "", "  ")
	return string(text) + "\n"
}

func jsonLines[T any](all []T) string {
	return strings.Join(mapSlice(all, func(one T) string { return jsonLine(one) }), "")
}

func mapSlice[T, U any](all []T, apply func(T) U) (results []U) {
	for _, one := range all {
		results = append(results, apply(one))
	}
	return results
}

// Exit codes.
const (
	ExitOK     = 0 // success
	ExitFailed = 1 // tests failed
	ExitUsage  = 2 // bad usage, or an invalid suite
	ExitBroken = 3 // set-up, deployment, engine or a report failed, or the command was interrupted
)

// exitError is an error with an exit code. Without err nothing is printed: the command has printed its output.
type exitError struct {
	code int
	err  error
	hint bool // whether to refer to the help
}

func (e *exitError) Error() string { return fmt.Sprint(e.err) }
func (e *exitError) Unwrap() error { return e.err }

// exitOf returns the exit error in err, or nil.
func exitOf(err error) (e *exitError) {
	_ = errors.As(err, &e)
	return e
}

func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...), hint: true}
}

// invalid marks the error of an unusable input, such as a suite. It keeps exit errors and interruptions.
func invalid(err error) error {
	if err == nil || exitOf(err) != nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &exitError{code: ExitUsage, err: err}
}

// exit returns an error with an exit code and no message, or nil for ExitOK.
func exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}

func codeOf(err error) int {
	switch e := exitOf(err); {
	case e != nil:
		return e.code
	case err != nil:
		return ExitBroken
	}
	return ExitOK
}
