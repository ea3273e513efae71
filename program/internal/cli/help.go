package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unified-test-runner/utr/internal/process/cache"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/process/official"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

func helpCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "help [COMMAND]",
		GroupID: aboutGroup,
		Short:   "Describe a command",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string,
			_ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			for _, c := range visible(cmd.Root()) {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}, func(f *flags) action {
		return func(_ context.Context, c *invocation) error {
			root := f.command.Root()
			command, rest, err := root.Find(c.paths)
			switch {
			case err != nil:
				return usage("%w", err)
			case len(rest) > 0 && command.HasSubCommands():
				return unknownCommand(command, rest)
			case len(rest) > 0:
				return unexpected(rest[0])
			}
			return c.print(Help(command))
		}
	})
}

func versionCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
	}, func(f *flags) action {
		asJSON := false
		f.toggle(&asJSON, "json", "print a JSON document")
		return func(_ context.Context, c *invocation) error {
			if asJSON {
				return c.print(jsonLine(struct {
					Version string `json:"version"`
					Commit  string `json:"commit,omitempty"` // known for builds in a checkout
					Go      string `json:"go"`
					OS      string `json:"os"`
					Arch    string `json:"arch"`
				}{c.program.Version, c.program.Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH}))
			}
			return c.print(fmt.Sprintf("utr %s %s %s/%s\n", c.program.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
		}
	})
}

// completes offers words, or files, as arguments. It calls words only when a shell asks for completions.
func completes(words func() []string, files cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words(), files
	}
}

// completesFirst offers words as the first argument, and other words or files as the next.
func completesFirst(first, next func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return first(), cobra.ShellCompDirectiveNoFileComp
		}
		return next(), cobra.ShellCompDirectiveDefault
	}
}

const unlimited = math.MaxInt

// arguments limits the number of arguments. what describes the required ones in an error.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("requires %s", what)
		case len(args) > most:
			return unexpected(args[most])
		}
		return nil
	}
}

func unexpected(argument string) error { return usage("unexpected argument %q", argument) }

// suggestFlag adds the flag that an unknown one may stand for.
func suggestFlag(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	command.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("%w%s", err, strings.Replace(suggest.Hint(unknown.GetSpecifiedName(), names), "mean ", "mean --", 1))
}

const (
	envURI          = "UTR_URI"
	envSingleURI    = "UTR_SINGLE_URI"
	envPassword     = "UTR_PASSWORD"  // not a flag: process listings show those
	envDriversTools = "DRIVERS_TOOLS" // a checkout of drivers-evergreen-tools
	envActions      = "GITHUB_ACTIONS"
	envCommit       = "GITHUB_SHA"
	envGitLabCommit = "CI_COMMIT_SHA"
	envNoColor      = "NO_COLOR"
	envTerminal     = "TERM"
)

// Environment returns the table of environment variables.
func Environment() string {
	var b strings.Builder
	b.WriteString("Environment variables:\n")
	for _, v := range [...]struct{ name, use string }{
		{envURI, "connection string of the deployment, for commands with --uri"},
		{envSingleURI, "the same for --single-uri"},
		{envPassword, "password of utr serve --user"},
		{envDriversTools, "the same as --orchestration-files"},
		{cache.EnvDir, "folder for unpacked adapters, drivers that utr names, and specifications"},
		{official.EnvDir, "folder of official suites: source in a checkout of mongodb/specifications"},
		{"UTR_PYTHON", "Python of the engine pymongo (default python3)"},
		{"UTR_NODE_PATH", "folder node_modules with the driver of the engine node"},
		{"UTR_RUBY", "Ruby of the engine ruby (default ruby)"},
		{"UTR_JAVA_ADAPTER", "program of the engine java, a jar"},
		{"UTR_RUST_ADAPTER", "program of the engine rust"},
		{"UTR_SOURCE", "checkout of utr, to build driver@VERSION (default the working directory)"},
		{"UTR_CHECKOUTS", "absolute path of a folder with checkouts of drivers, for driver@main and others"},
		{ledger.EnvDir, "folder of the ledger that utr clean reads"},
		{ledger.EnvParent, "parent of that folder, if " + ledger.EnvDir + " is not set"},
		{envActions, "if true, failures are annotated for GitHub Actions"},
		{envCommit, "commit that CI tested, for --json; or $" + envGitLabCommit},
		{envNoColor, "if set, output has no colors"},
		{envTerminal, "if dumb, output has no colors and no progress line"},
	} {
		fmt.Fprintf(&b, "  %-18s %s\n", v.name, v.use)
	}
	return b.String()
}

func visible(of *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(of.Commands()), func(c *cobra.Command) bool { return c.Hidden })
}

// Help returns the text of --help.
func Help(command *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nUsage: %s\n", command.Short, usageLine(command))
	if command.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(command.Long))
	}
	for _, group := range append(command.Groups(), &cobra.Group{Title: "Commands:"}) {
		title := "\n" + group.Title + "\n"
		for _, c := range visible(command) {
			if c.GroupID == group.ID {
				fmt.Fprintf(&b, "%s  %-14s %s\n", title, c.Name(), c.Short)
				title = ""
			}
		}
	}
	const columns = 100
	for _, g := range flagGroups(command) {
		fmt.Fprintf(&b, "\n%s:\n%s", g.name, g.flags.FlagUsagesWrapped(columns))
	}
	if command.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n  %s\n", strings.ReplaceAll(command.Example, "\n", "\n  "))
	}
	if !command.HasParent() {
		b.WriteString("\n" + Environment() + `
"utr help COMMAND" describes a command. "utr COMMAND @FILE" reads more arguments from
a file, one per line, and "@-" from standard input: process listings do not show them.
`)
	}
	return b.String()
}

func usageLine(command *cobra.Command) string {
	line := command.CommandPath()
	_, rest, _ := strings.Cut(command.Use, " ")
	if len(flagGroups(command)) > 0 {
		line += " [flags]"
	}
	return strings.TrimSpace(line + " " + rest)
}

type flagGroup struct {
	name  string
	flags *pflag.FlagSet
}

// usedMost is the annotation of a command that lists the flags with which its help begins.
const usedMost = "used most"

// flagGroups returns the flags of a command, except --help: those that are used most, and then the others by group, in
// the order of their declaration.
func flagGroups(command *cobra.Command) (groups []flagGroup) {
	add := func(name string, f *pflag.Flag) {
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.name == name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, flagGroup{name, pflag.NewFlagSet(name, pflag.ContinueOnError)})
			groups[i].flags.SortFlags = false
		}
		groups[i].flags.AddFlag(f)
	}
	first := strings.Fields(command.Annotations[usedMost])
	for _, name := range first {
		add("Used most", command.Flags().Lookup(name))
	}
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !slices.Contains(first, f.Name) {
			add(cmp.Or(strings.Join(f.Annotations[groupOf], ""), "Flags"), f)
		}
	})
	return groups
}
