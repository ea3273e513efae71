package cli

import (
	"context"
	"fmt"
	"runtime"
	"strings"
)

func helpCommand() *command {
	return &command{
		name:      "help",
		summary:   "tell about utr, or about a command",
		arguments: "[COMMAND]",
		words:     names,
		declare: func(f *flags) action {
			markdown := f.toggle("markdown", "print the page about all commands, docs/commands.md")
			return func(_ context.Context, c *call) error {
				switch {
				case *markdown:
					return c.print(Markdown())
				case len(c.paths) == 0:
					return c.print(overview())
				}
				command := find(c.paths[0])
				switch {
				case len(c.paths) > 1:
					return usage("help: name one command at most")
				case command == nil:
					return usage("help: %w", unknownCommand(c.paths[0]))
				}
				return c.print(command.help())
			}
		},
	}
}

func versionCommand() *command {
	return &command{
		name:    "version",
		summary: "print the version",
		declare: func(*flags) action {
			return func(_ context.Context, c *call) error {
				if len(c.paths) > 0 {
					return usage("version: it takes no arguments")
				}
				return c.print(fmt.Sprintf("utr %s %s %s/%s\n", c.program.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
			}
		},
	}
}

func names() []string {
	var out []string
	for _, c := range commands() {
		out = append(out, c.name)
	}
	return out
}

// overview is the usage of utr.
func overview() string {
	var b strings.Builder
	b.WriteString("utr runs Unified Test Format suites: it judges a MongoDB driver by what suites say.\n\nusage: utr COMMAND [FLAGS] [ARGUMENTS]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-12s %s\n", c.name, c.summary)
	}
	b.WriteString("\nutr help COMMAND tells more about one. utr COMMAND @FILE takes arguments from a file,\none a line, and @- from standard input: no list of processes shows them.\n")
	return b.String()
}

// rows are the flags of a command in the order in which it declares them.
func (c *command) rows() []flagRow {
	f := newFlags()
	c.declare(f)
	return f.declared
}

func (r flagRow) spelling() string {
	dashes := "--"
	if len(r.name) == 1 {
		dashes = "-"
	}
	if r.value == "" {
		return dashes + r.name
	}
	return dashes + r.name + " " + r.value
}

func (c *command) usage() string {
	parts := []string{"utr", c.name}
	if len(c.rows()) > 0 {
		parts = append(parts, "[FLAGS]")
	}
	if c.arguments != "" {
		parts = append(parts, c.arguments)
	}
	return strings.Join(parts, " ")
}

// help is the page of one command for a terminal.
func (c *command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "utr %s: %s\n\nusage: %s\n", c.name, c.summary, c.usage())
	if c.details != "" {
		fmt.Fprintf(&b, "\n%s\n", c.details)
	}
	if rows := c.rows(); len(rows) > 0 {
		b.WriteString("\nflags:\n")
		for _, r := range rows {
			fmt.Fprintf(&b, "  %s\n      %s\n", r.spelling(), r.summary)
		}
	}
	if len(c.examples) > 0 {
		b.WriteString("\nexamples:\n")
		for _, e := range c.examples {
			fmt.Fprintf(&b, "  %s\n      %s\n", e.line, e.what)
		}
	}
	return b.String()
}

// Markdown is docs/commands.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("<!-- Made by `make generate` from the table of commands in internal/cli. Do not edit. -->\n\n# Commands\n\n")
	b.WriteString("| command | what it does |\n| --- | --- |\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "| [`utr %s`](#utr-%s) | %s |\n", c.name, c.name, c.summary)
	}
	b.WriteString("\nFlags may stand before or after arguments; `--flag value`, `--flag=value` and `-flag value` mean the same, and what follows `--` is no flag. Of a flag that is given twice the last one counts, unless it may be repeated.\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "\n## utr %s\n\n```\n%s```\n", c.name, c.help())
	}
	return b.String()
}
