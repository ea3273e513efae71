package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/internal/process/official"
)

func specsGroup(c *invocation) *cobra.Command {
	return group("specs COMMAND", "Fetch the official suites", "a command: fetch", fetchCommand(c))
}

func fetchCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "fetch [REV]",
		Short: "Fetch the official suites with git",
		Long: `Fetches mongodb/specifications, so that "utr run official/retryable-reads" runs the
official suites of a specification. REV is a commit (40 digits), a branch or a tag; without
it, utr fetches the commit for which it was tested. The checkout is in the cache folder, or
where $UTR_SPECIFICATIONS says. utr does not change a checkout that it did not create.

Exit codes: 0 the suites are there, 3 they could not be fetched.`,
		Example: `utr specs fetch
utr run official/retryable-reads
# the newest ones
utr specs fetch master`,
		Args:              arguments(0, 1, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(f *flags) action {
		remote := official.Remote
		f.text(&remote, "from", "URL", "repository to fetch from, such as a fork or a mirror")
		return func(ctx context.Context, c *invocation) error {
			dir, err := official.Dir(c.env)
			if err != nil {
				return err
			}
			revision := official.Revision
			if len(c.paths) > 0 {
				revision = cmp.Or(c.paths[0], revision)
			}
			commit, err := official.Fetch(ctx, dir, remote, revision)
			if err != nil {
				return err
			}
			return c.print(fmt.Sprintf("%s is at %s; next: utr run official/retryable-reads\n", dir, commit))
		}
	})
}
