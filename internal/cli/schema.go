package cli

import (
	"context"
	"strings"

	"github.com/unified-test-runner/utr/specs/schema"
)

func schemaCommand() *command {
	return &command{
		name:      "schema",
		summary:   "print the JSON schema of a schemaVersion",
		arguments: "[VERSION]",
		details: `Prints the JSON schema that suites of a schemaVersion are validated against; the
newest that utr knows, if none is named.`,
		examples: []example{{"utr schema 1.4 > schema-1.4.json", "for an editor or another validator"}},
		words:    schema.Versions,
		declare: func(f *flags) action {
			list := f.toggle("list", "list the versions instead")
			return func(_ context.Context, c *call) error {
				version := schema.Newest
				switch {
				case *list && len(c.paths) == 0:
					return c.print(strings.Join(schema.Versions(), "\n") + "\n")
				case len(c.paths) > 1 || *list:
					return usage("schema: name one version at most")
				case len(c.paths) == 1:
					version = c.paths[0]
				}
				text, err := schema.JSON(version)
				if err != nil {
					return usage("schema: %w", err)
				}
				return c.print(strings.TrimRight(string(text), "\n") + "\n")
			}
		},
	}
}
