package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/process/parallel"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/specs"
)

func checkSuitesCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "check PATH...",
		Short: "Check suites before a commit, and with --fix correct them",
		Long: `Does in one pass what utr validate, utr schema-version, utr fmt --check and utr convert
--check do: each suite is valid, declares the lowest schemaVersion that it needs, and is
formatted, and the JSON file beside a YAML file is up to date. Problems are printed by
file, line and column.

--fix first corrects schemaVersion, the layout and JSON files, as utr schema-version
--fix, utr fmt and utr convert do, and prints the files that it changed.

Exit codes: 0 nothing is wrong, 1 --fix would correct all that is wrong, 2 bad usage, or a
suite has an error, or with --strict a warning.`,
		Example: `# before a commit
utr check --fix suites/
# in a workflow of GitHub Actions
utr check --strict --format github suites/
# suites without JSON files
utr check --disable json suites/`,
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		v := validation{upkeep: upkeeps()}
		f.toggle(&v.fix, "fix", "correct schemaVersion, the layout and JSON files")
		v.declare(f)
		return v.act
	})
}

// upkeep is a rule of utr check that concerns how a valid suite is stored. --fix can correct what violates it.
type upkeep struct {
	specs.Check
	// find returns what is wrong with a file, or nil, and corrects it.
	find func(specs.File) (found *specs.Problem, correct func() error)
}

// The rules of upkeep, in the order in which --fix applies them: a JSON file depends on the others.
const (
	ruleVersion = "lowest-version"
	ruleLayout  = "layout"
	ruleJSON    = "json"
)

func upkeeps() []upkeep {
	return []upkeep{
		{specs.Check{Name: ruleVersion, Doc: "In utr check: a suite declares the lowest schemaVersion that it needs."},
			wrongVersion},
		{specs.Check{Name: ruleLayout, Doc: "In utr check: a YAML suite has the layout of utr fmt."}, otherLayout},
		{specs.Check{Name: ruleJSON, Doc: "In utr check: the JSON file beside a YAML suite is the one that utr convert writes."},
			staleJSON},
	}
}

func (u upkeep) name() string { return u.Name }

func wrongVersion(f specs.File) (*specs.Problem, func() error) {
	lowest, because, err := specs.Lowest(f.Name, f.Root)
	declared, _ := specs.ParseVersion(f.Root.Get("schemaVersion").Text())
	if err != nil || declared == lowest { // utr validate reports the error
		return nil, nil
	}
	return &specs.Problem{Position: f.Root.Get("schemaVersion").Position, Path: "schemaVersion", Rule: ruleVersion,
		Message: versionNeeded(f, lowest, because)}, func() error { return setVersion(f, lowest.String()) }
}

func otherLayout(f specs.File) (*specs.Problem, func() error) {
	text, err := source.Format(f.Name, f.Data)
	p := &specs.Problem{Position: source.Position{File: f.Name, Line: 1, Column: 1}, Rule: ruleLayout}
	switch {
	case filepath.Ext(f.Name) == ".json", err == nil && bytes.Equal(text, f.Data):
		return nil, nil
	case err != nil:
		p.Message = err.Error()
		return p, nil
	}
	want := bytes.Split(text, []byte("\n"))
	for i, line := range bytes.Split(f.Data, []byte("\n")) {
		if i == len(want) || !bytes.Equal(line, want[i]) {
			p.Position.Line = i + 1
			break
		}
	}
	p.Message = "is not formatted from this line on"
	return p, func() error { return reportfile.Write(f.Name, reportfile.Text(text)) }
}

func staleJSON(f specs.File) (*specs.Problem, func() error) {
	name, text, _ := toJSON(f)
	have, err := os.ReadFile(name)
	if filepath.Ext(f.Name) == ".json" || err == nil && bytes.Equal(have, text) {
		return nil, nil
	}
	p := &specs.Problem{Position: source.Position{File: name}, Rule: ruleJSON, Message: "is out of date"}
	twins, _ := specs.Read([]string{name}, specs.Options{}) // a file that cannot be parsed is out of date, too
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Message = "is missing"
	case len(twins) == 1:
		path, values, differ := source.Difference(f.Root, twins[0].Root)
		if differ {
			p.Path, p.Message = path, "is out of date: it differs from "+f.Name
		}
		if differ && values[1] != nil {
			p.Position = values[1].Position
		}
	}
	return p, func() error { return reportfile.Write(name, reportfile.Text(text)) }
}

// keeps reports whether a rule of upkeep is in force.
func (v *validation) keeps(rule string) bool {
	return slices.ContainsFunc(v.upkeep, func(u upkeep) bool { return u.Name == rule }) &&
		!slices.Contains(v.disabled, rule)
}

// keepUp finds what violates the rules of upkeep, or with --fix corrects it and returns the changed files.
func (v *validation) keepUp(c *invocation) (stale []specs.Problem, changed []string, err error) {
	for _, u := range v.upkeep {
		if !v.keeps(u.Name) {
			continue
		}
		files, _ := specs.Read(c.paths, specs.Options{Official: c.official()}) // loading reports the errors
		found, correct := make([]*specs.Problem, len(files)), make([]func() error, len(files))
		for _, f := range files {
			if _, err := os.Stat(f.Name); err != nil {
				return nil, nil, usage("%s is not a file: utr validate checks built-in suites", f.Name)
			}
		}
		_ = parallel.Each(0, files, func(i int, f specs.File) error {
			if !f.MustBeInvalid {
				found[i], correct[i] = u.find(f)
			}
			return nil
		})
		for i, p := range found {
			if p == nil {
				continue
			}
			if v.fix && correct[i] != nil {
				err := correct[i]()
				if err == nil {
					changed = append(changed, p.Position.File)
					continue
				}
				p.Message += "; " + err.Error()
			}
			stale = append(stale, *p)
		}
	}
	slices.Sort(changed)
	return stale, slices.Compact(changed), nil
}
