package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/specs"
)

func schemaCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "schema [VERSION]",
		Short: "Print the JSON schema of a schemaVersion",
		Long: `Prints the JSON schema of a schemaVersion, by default the newest one. It accepts the same
suites as utr.`,
		Example: `# for an editor or another validator
utr schema 1.4 > schema-1.4.json
# every version, to publish: VERSION.json
utr schema --write site/schema`,
		Args:              arguments(0, 1, ""),
		ValidArgsFunction: completes(schema.Versions, cobra.ShellCompDirectiveNoFileComp),
	}, func(f *flags) action {
		list, dir := false, ""
		f.toggle(&list, "list", "list the versions instead")
		f.text(&dir, "write", "DIR", "write the schema of every version into a folder, as VERSION.json")
		return func(_ context.Context, c *invocation) error {
			version := schema.Newest
			switch {
			case list && dir != "":
				return usage("--list and --write are mutually exclusive")
			case (list || dir != "") && len(c.paths) > 0:
				return unexpected(c.paths[0])
			case list:
				return c.print(strings.Join(schema.Versions(), "\n") + "\n")
			case dir != "":
				return writeSchemas(dir)
			case len(c.paths) == 1:
				version = c.paths[0]
			}
			text, err := schemaText(version)
			if err != nil {
				return usage("%w", err)
			}
			return c.print(text)
		}
	})
}

func schemaText(version string) (string, error) {
	text, err := schema.JSON(version)
	return strings.TrimRight(string(text), "\n") + "\n", err
}

func writeSchemas(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write schemas: %w", err)
	}
	for _, version := range schema.Versions() {
		text, err := schemaText(version)
		if err != nil {
			return err
		}
		if err := reportfile.Write(filepath.Join(dir, version+".json"), reportfile.Text(text)); err != nil {
			return err
		}
	}
	return nil
}

func schemaVersionCommand(c *invocation) *cobra.Command {
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
		Example: `# all suites of a folder
utr schema-version all
# change those that declare another version
utr schema-version --fix suites/`,
		Args: arguments(1, unlimited, "a suite or a folder"),
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

func (v *schemaVersions) run(_ context.Context, c *invocation) error {
	files, err := specs.Read(c.paths, specs.Options{Stdin: c.program.Stdin, Official: c.official()})
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
			line = fmt.Sprintf("%s: %s\n", declared.Position, versionNeeded(f, lowest, because))
		}
		v.out.add(versionRecord{declared.Position, declared.Text(), lowest.String(), problemRecord(because)}, "%s", line)
	}
	var parts []string
	for i, what := range []string{"a lower version than needed", "the lowest version possible",
		"a higher version than needed"} {
		if n := count[i-1]; n > 0 {
			parts = append(parts, plural.Of(n, "suite")+" with "+what)
		}
	}
	v.out.add(nil, "%s", cmp.Or(strings.Join(parts, ", "), "0 suites"))
	if v.fix {
		v.out.add(nil, "; %d changed", changed)
	}
	v.out.add(nil, "\n")
	invalidSuites := errors.Join(failures...)
	err = c.conclude(c.secrets.Redact(v.out.String()), invalidSuites == nil && count[-1]+count[1] > changed)
	return cmp.Or(err, invalid(invalidSuites))
}

// versionNeeded says which version a suite needs in place of the declared one, and why.
func versionNeeded(f specs.File, lowest specs.Version, because *specs.Problem) string {
	text := f.Root.Get("schemaVersion").Text()
	only := ""
	if declared, _ := specs.ParseVersion(text); declared.Compare(lowest) > 0 {
		only = " only"
	}
	says := fmt.Sprintf("declares %q, needs%s %s", text, only, lowest)
	if because != nil {
		says += fmt.Sprintf(": line %d: %s: %s (%s)", because.Position.Line, because.Path, because.Message, because.Rule)
	}
	return says
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
		if err := reportfile.Write(f.Name, reportfile.Text(f.Data)); err != nil {
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
	text := strconv.Quote(version) // 1.10 without quotes would be a number
	if start < len(line) && strings.ContainsRune(`"'`, line[start]) {
		start, text = start+1, version
	}
	rest, plain := strings.CutPrefix(string(line[start:]), declared.Text())
	if declared.Text() == "" || !plain {
		return nil, fmt.Errorf("%s: cannot edit schemaVersion here; change it to %q by hand", declared.Position, version)
	}
	lines[declared.Position.Line-1] = string(line[:start]) + text + rest
	return []byte(strings.Join(lines, "")), nil
}
