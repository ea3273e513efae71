package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/program/internal/scaffold"
)

func initCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "init NAME DIR",
		Short: "Write an adapter to begin with, for your own driver",
		Long: `Writes an adapter into the folder DIR: a program that begins as one of those in utr, an
engines file that calls it NAME, an empty list of known failures, a README with the next
commands, and a workflow for GitHub Actions in .github/workflows of the repository around
DIR. Existing files are not changed.

Exit codes: 0 the files were written, 2 they were not.`,
		Example: `# an adapter in Python, then what it lacks
utr engine init mydriver utr
cd utr && utr engine check mydriver
# the smallest one
utr engine init mydriver --from ruby utr`,
		Args:              arguments(2, 2, "a name and a folder"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}, func(f *flags) action {
		from, force := scaffold.Kinds()[0], false
		choice(f, &from, "from", "ADAPTER", "adapter to begin with", scaffold.Kinds()...)
		f.toggle(&force, "force", "overwrite existing files")
		return func(_ context.Context, c *invocation) error { return c.initEngine(from, force) }
	})
}

// ref is the tag or the commit of this binary, or if neither is known a word that says what to write in its place.
func (p *Program) ref() string {
	if released.MatchString(p.Version) {
		return p.Version
	}
	return cmp.Or(p.Commit, "COMMIT")
}

// released matches the version of a release.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

func (c *invocation) initEngine(from string, force bool) error {
	name, dir := c.paths[0], c.paths[1]
	if _, taken := c.program.Engines[name]; taken {
		return usage("%s is the name of a built-in engine: choose another name", name)
	}
	if !matrix.ValidName(name) {
		return usage("the name %q must consist of letters, digits, and between them dots, plus and minus signs", name)
	}
	files, err := scaffold.Write(name, from, dir, c.program.ref(), force)
	if exists := (*scaffold.ExistsError)(nil); errors.As(err, &exists) {
		return usage("%w: --force allows that", err)
	}
	if err != nil {
		return usage("%w", err)
	}
	return c.print(fmt.Sprintf("wrote %s\nnext: the commands of %s/README.md\n", strings.Join(files, "\nwrote "),
		strings.TrimRight(dir, `/\`)))
}
