package cli

import (
	"bytes"
	"cmp"
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

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/schema"
)

func schemaCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "schema [VERSION]",
		Short: "Print the JSON schema of a schemaVersion",
		Long: `Prints the JSON schema of a schemaVersion, by default the newest one. It accepts the same
suites as utr.`,
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

func schemaVersionCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "schema-version PATH...",
		Short: "Find the lowest schemaVersion that suites need",
		Long: `Prints each suite that does not declare the lowest schemaVersion that it complies with,
and the first position that needs that version. The JSON schemas decide; for what they
do not cover, such as operations, the changelog of the format decides.

--fix changes only the value of schemaVersion, in the file and in the JSON file of the
same name.

Exit codes: 0 all suites declare the lowest version, or now do, 1 some declare another
one, 2 bad usage, or a suite that is valid in no version.`,
		Example: `# all suites of a directory
utr schema-version specs/
# change those that declare another version
utr schema-version --fix specs/`,
		Args: arguments(1, unlimited, "a suite or a directory"),
	}, func(f *flags) action {
		var v schemaVersions
		f.toggle(&v.fix, "fix", "change the files")
		f.toggle(&v.out.asJSON, "json", "print a JSON line for each suite")
		return v.run
	})
}

type schemaVersions struct {
	fix bool
	out lines
}

func (v *schemaVersions) run(_ context.Context, c *call) error {
	files, err := specs.Read(c.paths, specs.Options{Stdin: c.program.Stdin})
	files = slices.DeleteFunc(files, func(f specs.File) bool { return f.MustBeInvalid })
	failures := []error{err}
	count, changed := map[int]int{}, 0 // by whether the declared version is lower, the lowest, or higher
	for _, f := range files {
		lowest, because, err := specs.Lowest(f.Name, f.Root)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		declared := f.Root.Get("schemaVersion")
		version, _ := specs.ParseVersion(declared.Text()) // Lowest accepts no other form
		order := version.Compare(lowest)
		count[order]++
		if v.fix && order != 0 {
			if err := setVersion(f, lowest.String()); err != nil {
				failures = append(failures, err)
				continue
			}
			changed++
		}
		line := ""
		if order != 0 {
			needs := map[int]string{-1: "needs", 1: "needs only"}[order]
			line = fmt.Sprintf("%s: declares %q, %s %s", declared.Position, declared.Text(), needs, lowest)
			if because != nil {
				line += fmt.Sprintf(": line %d: %s: %s (%s)", because.Position.Line, because.Path, because.Message, because.Rule)
			}
			line += "\n"
		}
		v.out.add(versionRecord{declared.Position, declared.Text(), lowest.String(), problemRecord(because)}, "%s", line)
	}
	v.out.add(nil, "%d suites: %d declare the lowest schemaVersion that they need, %d a lower one, %d a higher one",
		len(files), count[0], count[-1], count[1])
	if v.fix {
		v.out.add(nil, "; %d changed", changed)
	}
	v.out.add(nil, "\n")
	invalidSuites := errors.Join(failures...)
	err = c.conclude(c.secrets.Redact(v.out.String()), invalidSuites == nil && count[-1]+count[1] > changed)
	return cmp.Or(err, invalid(invalidSuites))
}

type versionRecord struct {
	source.Position
	Declared string `json:"declared"`
	Lowest   string `json:"lowest"`
	Because  any    `json:"because,omitempty"`
}

// setVersion changes schemaVersion in a file and in the JSON file of the same name.
func setVersion(f specs.File, version string) error {
	files := []specs.File{f}
	if f.Twin != "" {
		twins, err := specs.Read([]string{f.Twin}, specs.Options{})
		if err != nil {
			return err
		}
		files = append(files, twins...)
	}
	for i, f := range files {
		data, err := withVersion(f, version)
		if err != nil {
			return err
		}
		files[i].Data = data
	}
	for _, f := range files {
		if _, err := os.Stat(f.Name); err != nil {
			return fmt.Errorf("%s cannot be changed: %w", f.Name, err)
		}
		if err := writeFile(f.Name, writeText(f.Data)); err != nil {
			return err
		}
	}
	return nil
}

func withVersion(f specs.File, version string) ([]byte, error) {
	declared := f.Root.Get("schemaVersion")
	lines := strings.SplitAfter(string(f.Data), "\n")
	line := []rune(lines[declared.Position.Line-1])
	start := min(declared.Position.Column-1, len(line))
	if start < len(line) && strings.ContainsRune(`"'`, line[start]) {
		start++
	}
	rest, plain := strings.CutPrefix(string(line[start:]), declared.Text())
	if declared.Text() == "" || !plain {
		return nil, fmt.Errorf("%s: cannot edit schemaVersion here; change it to %q by hand", declared.Position, version)
	}
	lines[declared.Position.Line-1] = string(line[:start]) + version + rest
	return []byte(strings.Join(lines, "")), nil
}

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
