package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/specs/schema"
)

func schemaCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "schema [VERSION]",
		Short: "Print the JSON schema of a schemaVersion",
		Long: `Prints a JSON schema that accepts the same suites of a schemaVersion as utr does, by
default the newest one.`,
		Example: `# for an editor or another validator
utr schema 1.4 > schema-1.4.json`,
		Args:              arguments(0, 1, ""),
		ValidArgsFunction: completes(schema.Versions, cobra.ShellCompDirectiveNoFileComp),
	}, func(f *flags) action {
		list := false
		f.toggle(&list, "list", "list the versions instead")
		return func(_ context.Context, c *call) error {
			version := schema.Newest
			switch {
			case list && len(c.paths) == 0:
				return c.print(strings.Join(schema.Versions(), "\n") + "\n")
			case list:
				return unexpected(c.paths[0])
			case len(c.paths) == 1:
				version = c.paths[0]
			}
			text, err := schema.JSON(version)
			if err != nil {
				return usage("%w", err)
			}
			return c.print(strings.TrimRight(string(text), "\n") + "\n")
		}
	})
}
