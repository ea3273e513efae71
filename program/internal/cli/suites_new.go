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

	"github.com/unified-test-runner/utr/docs/examples"
)

//go:embed templates
var templates embed.FS

// namesIn returns the names of the YAML files in a folder of this binary, without their extension.
func namesIn(files embed.FS, folder string) []string {
	entries, _ := files.ReadDir(folder) // embedded, so it exists
	return mapSlice(entries, func(e fs.DirEntry) string { return strings.TrimSuffix(e.Name(), ".yml") })
}

func suiteTemplates() []string  { return namesIn(templates, "templates") }
func matrixTemplates() []string { return namesIn(examples.Matrices, ".") }

func newCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "new TEMPLATE FILE",
		Short: "Create a suite or a matrix file",
		Long: `Writes a suite that is valid and passes, with comments, for one of the specifications
` + strings.Join(suiteTemplates(), ", ") + `; or one of the matrix files
` + strings.Join(matrixTemplates(), ", ") + `. FILE must end in .yml and must not exist.

Exit codes: 0 the file was written, 2 it was not.`,
		Example: `# then docs/your-suite.md
utr new retryable-reads find-with-a-sort.yml
utr run find-with-a-sort.yml
# then docs/your-night.md
utr new nightly night.yml
utr matrix night.yml --dry-run`,
		Args: arguments(2, 2, "a template and a file"),
		ValidArgsFunction: completesFirst(func() []string { return append(suiteTemplates(), matrixTemplates()...) },
			func() []string { return nil }),
	}, func(*flags) action { return newFile })
}

func newFile(_ context.Context, c *invocation) error {
	template, name := c.paths[0], c.paths[1]
	title, isYAML := strings.CutSuffix(filepath.Base(name), ".yml")
	if !isYAML || title == "" {
		return usage("the name of a suite or a matrix file must end in .yml, not %q", name)
	}
	var made []byte
	next := "run"
	switch {
	case slices.Contains(suiteTemplates(), template):
		text, _ := templates.ReadFile("templates/" + template + ".yml") // embedded, so it exists
		made = []byte(strings.NewReplacer("FILE", name, `"NAME"`, fmt.Sprintf("%q", title), "DATABASE",
			"utr-"+template).Replace(string(text)))
	case slices.Contains(matrixTemplates(), template):
		made, _ = examples.Matrices.ReadFile(template + ".yml") // embedded, so it exists
		next = "matrix --dry-run"
	default:
		return unknown("template", template, append(suiteTemplates(), matrixTemplates()...))
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // does not overwrite
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage("%s already exists", name)
	case err != nil:
		return usage("%w", err)
	}
	_, err = f.Write(made)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return c.print(fmt.Sprintf("wrote %s; next: utr %s %s\n", name, next, name))
}
