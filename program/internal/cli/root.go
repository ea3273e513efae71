package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// aboutGroup is the title of the command group that includes completion.
const aboutGroup = "About utr:"

// Help lists commands in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// Root returns the commands, for what describes them.
func Root() *cobra.Command { return (&invocation{program: New()}).root() }

func (c *invocation) root() *cobra.Command {
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
	add := func(title string, commands ...func(*invocation) *cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, make := range commands {
			command := make(c)
			command.GroupID = title
			root.AddCommand(command)
		}
	}
	add("Suites and reports:", runCommand, matrixCommand, compareCommand, proseCommand, diffCommand, mergeCommand,
		siteCommand, engineGroup,
		newCommand, listCommand, checkSuitesCommand, validateCommand, schemaVersionCommand, convertCommand, fmtCommand,
		coverageCommand,
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
