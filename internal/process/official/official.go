// Package official finds the official suites in a checkout of mongodb/specifications, and fetches them.
package official

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unified-test-runner/utr/internal/process/cache"
)

// Revision is the commit of mongodb/specifications, of 2026-08-13, for which this version of utr is tested.
const Revision = "92b3c0b9287bfba1b0ec4084300858d05c654f8c"

// Remote is the repository of the specifications.
const Remote = "https://github.com/mongodb/specifications"

// EnvDir is the environment variable with the folder of the suites: source in a checkout.
const EnvDir = "UTR_SPECIFICATIONS"

// source is the folder of the suites in a checkout.
const source = "source"

// Dir returns the folder of the suites: $UTR_SPECIFICATIONS, or the folder of the checkout in the cache folder. It may
// not exist.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := cache.Dir(getenv)
	return filepath.Join(dir, "specifications", source), err
}

// marker is the setting of git with which Fetch marks its checkouts. It does not change the checkouts of others.
const marker = "utr.fetched"

// Fetch checks out the suites of a revision in their folder, and returns the commit. The revision is a commit, or the
// name of a branch or tag. Fetch contacts the remote only if the commit is missing. An interrupted fetch can be
// repeated.
func Fetch(ctx context.Context, dir, remote, revision string) (commit string, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("fetching the specifications requires git: %w", err)
	}
	checkout := checkout{ctx, git, filepath.Dir(dir)}
	if filepath.Base(dir) != source {
		return "", fmt.Errorf("$%s must end in %s, the folder of the suites in a checkout: %s", EnvDir, source, dir)
	}
	if at, err := checkout.head(); err == nil && at == revision {
		return at, nil
	}
	if !empty(checkout.dir) && checkout.run("config", "--local", "--get", marker) != nil {
		return "", fmt.Errorf("%s exists, and utr specs fetch did not create it: use git there, or another folder in $%s",
			checkout.dir, EnvDir)
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"config", "--local", marker, "true"},
		{"fetch", "--quiet", "--depth", "1", remote, revision},
		{"checkout", "--quiet", "--detach", "FETCH_HEAD"},
	} {
		if err := checkout.run(args...); err != nil {
			return "", err
		}
	}
	return checkout.head()
}

func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

type checkout struct {
	ctx context.Context
	git string
	dir string
}

func (c checkout) run(args ...string) error {
	_, err := c.output(args...)
	return err
}

func (c checkout) head() (string, error) { return c.output("rev-parse", "--verify", "HEAD") }

// output runs git in this checkout, never in an enclosing one, and without prompting for a password.
func (c checkout) output(args ...string) (string, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", err
	}
	command := exec.CommandContext(c.ctx, c.git, args...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "GIT_DIR=.git", "GIT_WORK_TREE=.", "GIT_TERMINAL_PROMPT=0")
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		if c.ctx.Err() != nil {
			return "", c.ctx.Err()
		}
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
