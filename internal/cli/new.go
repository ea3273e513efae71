package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed templates
var templates embed.FS

func templateNames() []string {
	entries, _ := templates.ReadDir("templates") // embedded, so it exists
	return mapSlice(entries, func(e fs.DirEntry) string { return strings.TrimSuffix(e.Name(), ".yml") })
}

func newCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "new SPECIFICATION FILE",
		Short: "Create a suite",
		Long: `Writes a suite that is valid and passes, with comments, for one of the specifications
` + strings.Join(templateNames(), ", ") + `. FILE must end in .yml and must not exist.

Exit codes: 0 the file was written, 2 it was not.`,
		Example: `# then docs/writing-suites.md
utr new retryable-reads find-with-a-sort.yml
utr run find-with-a-sort.yml`,
		Args:              arguments(2, 2, "a specification and a file"),
		ValidArgsFunction: completesFirst(templateNames, func() []string { return nil }),
	}, func(*flags) action { return newSuite })
}

func newSuite(_ context.Context, c *call) error {
	specification, name := c.paths[0], c.paths[1]
	if !slices.Contains(templateNames(), specification) {
		return usage("unknown specification %q: choose one of %s", specification, strings.Join(templateNames(), ", "))
	}
	title, isYAML := strings.CutSuffix(filepath.Base(name), ".yml")
	if !isYAML || title == "" {
		return usage("the name of a suite must end in .yml, not %q", name)
	}
	text, _ := templates.ReadFile("templates/" + specification + ".yml") // embedded, so it exists
	made := strings.NewReplacer("FILE", name, `"NAME"`, fmt.Sprintf("%q", title), "DATABASE", "utr-"+specification).Replace(string(text))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // does not overwrite
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage("%s already exists", name)
	case err != nil:
		return usage("%w", err)
	}
	_, err = f.WriteString(made)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return c.print(fmt.Sprintf("wrote %s; next: utr run %s\n", name, name))
}
