package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/process/parallel"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/specs"
)

func convertCommand(c *invocation) *cobra.Command {
	return c.rewriteCommand(&cobra.Command{
		Use:   "convert PATH...",
		Short: "Write the JSON form of YAML suites",
		Long: `Writes x.json beside each x.yml, byte for byte as the specifications repository does with
js-yaml and JSON.stringify. Prints the files that it wrote; files that are up to date do
not change. For standard input, "-", it prints the JSON form.

Exit codes: 0 all JSON files are up to date, 1 with --check some are not, 2 bad usage
or a file that is not a suite.`,
		Example: `# write what is out of date
utr convert source/retryable-reads
# in CI
utr convert --check source/`,
	}, rewriting{form: toJSON, written: "JSON files written", stale: "JSON files out of date or missing"},
		"write nothing, and list the files that are out of date or missing")
}

func toJSON(f specs.File) (name string, text []byte, err error) {
	return strings.TrimSuffix(f.Name, filepath.Ext(f.Name)) + ".json", f.Root.JSONTwin(), nil
}

func fmtCommand(c *invocation) *cobra.Command {
	return c.rewriteCommand(&cobra.Command{
		Use:   "fmt PATH...",
		Short: "Format YAML suites",
		Long: `Rewrites YAML suites in the layout of the built-in ones: indented by two spaces, lists
inside documents too, spaces inside braces and brackets, and at most one blank line
between items. A document or list in braces that has several lines becomes one line of
at most 120 characters, or else a block. Order, quotes, comments and values are kept.
Prints the files that it changed. For standard input, "-", it prints the result.

Exit codes: 0 all files are formatted, 1 with --check some are not, 2 bad usage or a
file that is not a suite.`,
		Example: `# before a commit
utr fmt source/retryable-reads
# in CI
utr fmt --check source/`,
	}, rewriting{form: formatted, written: "changed", stale: "not formatted"},
		"write nothing, and list the files that are not formatted")
}

func formatted(f specs.File) (name string, text []byte, err error) {
	text, err = source.Format(f.Name, f.Data)
	return f.Name, text, err
}

// rewriting writes a file for each YAML suite.
type rewriting struct {
	form func(specs.File) (name string, text []byte, err error) // of the file to write
	// what the counted files are, without and with check
	written, stale string
	check          bool
}

// rewriteCommand completes a command. check describes its flag.
func (c *invocation) rewriteCommand(command *cobra.Command, r rewriting, check string) *cobra.Command {
	command.Args = arguments(1, unlimited, "a suite or a folder")
	return c.command(command, func(f *flags) action {
		f.toggle(&r.check, "check", check)
		return r.act
	})
}

func (r *rewriting) act(_ context.Context, c *invocation) error {
	defer shortLived()()
	files, err := specs.Read(c.paths, specs.Options{Stdin: c.program.Stdin, Official: c.official()})
	if err != nil {
		return invalid(err)
	}
	files = slices.DeleteFunc(files, func(f specs.File) bool { return filepath.Ext(f.Name) == ".json" })
	if len(files) == 0 {
		return usage("no suite is a YAML file")
	}
	names, texts := make([]string, len(files)), make([][]byte, len(files))
	err = parallel.Each(0, files, func(i int, f specs.File) (err error) {
		names[i], texts[i], err = r.form(f)
		return err
	})
	if err != nil {
		return usage("%w", err)
	}
	if len(c.paths) == 1 && c.paths[0] == specs.Stdin {
		return c.print(string(texts[0]))
	}
	stale := 0
	var out strings.Builder
	for i, f := range files {
		changed, err := rewrite(f, names[i], texts[i], r.check)
		if err != nil {
			return err
		}
		if changed {
			stale++
			out.WriteString(names[i] + "\n")
		}
	}
	did := r.written
	if r.check {
		did = r.stale
	}
	fmt.Fprintf(&out, "%d YAML suites: %d %s\n", len(files), stale, did)
	return c.conclude(out.String(), r.check && stale > 0)
}

// rewrite writes the file of a suite if its text differs, and reports whether it does.
func rewrite(f specs.File, name string, text []byte, check bool) (changed bool, err error) {
	if _, err := os.Stat(f.Name); err != nil {
		return false, usage("%s is not a file: built-in suites cannot be written", f.Name)
	}
	have, err := os.ReadFile(name)
	switch {
	case err == nil && bytes.Equal(have, text):
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case check:
		return true, nil
	}
	return true, reportfile.Write(name, reportfile.Text(text))
}
