package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/specs"
)

func convertCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
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
		Args: arguments(1, unlimited, "a suite or a directory"),
	}, func(f *flags) action {
		check := false
		f.toggle(&check, "check", "write nothing, and list the files that are out of date or missing")
		return func(_ context.Context, c *call) error { return c.convert(check) }
	})
}

func (c *call) convert(check bool) error {
	files, err := specs.Read(c.paths, specs.Options{Stdin: c.program.Stdin})
	if err != nil {
		return invalid(err)
	}
	yaml, stale := 0, 0
	var out strings.Builder
	for _, f := range files {
		stem, isJSON := strings.CutSuffix(f.Name, ".json")
		switch {
		case isJSON:
			continue
		case len(c.paths) == 1 && c.paths[0] == specs.Stdin:
			return c.print(string(f.Root.JSONTwin()))
		}
		stem = strings.TrimSuffix(stem, filepath.Ext(stem))
		yaml++
		changed, err := writeTwin(f, stem+".json", check)
		if err != nil {
			return err
		}
		if changed {
			stale++
			out.WriteString(stem + ".json\n")
		}
	}
	if yaml == 0 {
		return usage("no suite is a YAML file")
	}
	did := "written"
	if check {
		did = "out of date or missing"
	}
	fmt.Fprintf(&out, "%d YAML suites: %d JSON files %s\n", yaml, stale, did)
	return c.conclude(out.String(), check && stale > 0)
}

// writeTwin writes the JSON form of a suite if it differs, and reports whether it does.
func writeTwin(f specs.File, name string, check bool) (changed bool, err error) {
	if _, err := os.Stat(f.Name); err != nil {
		return false, usage("%s is not a file: built-in suites have no JSON form", f.Name)
	}
	want := f.Root.JSONTwin()
	have, err := os.ReadFile(name)
	switch {
	case err == nil && bytes.Equal(have, want):
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case check:
		return true, nil
	}
	return true, writeFile(name, writeText(want))
}
