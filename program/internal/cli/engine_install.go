package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/process/cache"
	"github.com/unified-test-runner/utr/internal/process/filelock"
	"github.com/unified-test-runner/utr/internal/process/processgroup"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/program/internal/report"
)

// installLimit is enough to build a driver on a busy machine.
const installLimit = 15 * time.Minute

// viaVersion returns an adapter at a version. It is installed before the first start.
func (c *invocation) viaVersion(a matrix.Adapter, version string) (namedEngine, error) {
	if !a.Installs() {
		return namedEngine{}, usage("the engine %s has no install in the engines file, so it has no versions", a.Name)
	}
	if hint := suggest.Hint(version, matrix.MovingVersions()); hint != "" {
		return namedEngine{}, usage("%s is not a version of %s%s", version, a.Name, hint)
	}
	if !matrix.ValidName(version) {
		return namedEngine{}, usage("%q is not a version of %s, such as 4.20.1%s", version, a.Name, example(a.Versions))
	}
	how, at := a.At(version, "")
	named := c.viaProcess(at, process.Options{Install: func(ctx context.Context) (command, environment []string,
		err error) {
		installed, err := c.install(ctx, a, version)
		return installed.Command, slices.Concat(childEnvironment(os.Environ()), installed.Environment), err
	}})
	named.install = how.Command
	return named, nil
}

func example(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	return ": its entry names " + strings.Join(versions, ", ")
}

// install installs a version of an adapter into a folder of its own in the cache, unless it is there, and returns the
// adapter with that folder. The folder appears when the installation is complete; runs that need the same one wait.
func (c *invocation) install(ctx context.Context, a matrix.Adapter, version string) (_ matrix.Adapter, err error) {
	how, at := a.At(version, "")
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot install %s: %w", at.Name, err)
		}
	}()
	limit := cmp.Or(how.Limit, installLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	if matrix.Moves(version) {
		if version, err = current(ctx, version, how, at); err != nil {
			return at, err
		}
		how, at = a.At(version, "")
	}
	dir, err := cache.Dir(c.env)
	if err != nil {
		return at, err
	}
	sum := sha256.Sum256([]byte(how.Command)) // another command may install something else
	folder := filepath.Join(dir, "versions", fmt.Sprintf("%s-%x", at.Name, sum[:4]))
	_, installed := a.At(version, folder)
	if present(folder) {
		return installed, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return at, err
	}
	lock, err := filelock.Wait(ctx, folder+".lock", func() {
		c.note("waiting for another run that is installing " + at.Name)
	})
	if err != nil {
		return at, err
	}
	defer func() { _ = lock.Close() }() // nil without flock
	if present(folder) {
		return installed, nil
	}
	c.note("installing " + at.Name)
	return installed, c.installInto(ctx, a, version, folder)
}

func present(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// installInto runs the command for a folder that gets its name when the command has succeeded.
func (c *invocation) installInto(ctx context.Context, a matrix.Adapter, version, folder string) error {
	half := folder + ".new"
	if err := errors.Join(os.RemoveAll(half), os.Mkdir(half, 0o755)); err != nil { // of a run that was killed
		return err
	}
	how, at := a.At(version, half)
	said := &processgroup.Tail{}
	stop := c.showInstallation(at.Name, said)
	err := shell(ctx, how.Command, at, said, said)
	stop()
	if err == nil {
		err = os.Rename(half, folder)
	}
	if err != nil {
		_ = os.RemoveAll(half)
		err = explained(err, said)
	}
	return err
}

// exitNotFound is the exit code of a shell that did not find a program.
const exitNotFound = 127

// explained adds the output of a command to its error. A missing program, or a command that prints one line, is the
// whole reason.
func explained(err error, said *processgroup.Tail) error {
	text := said.String()
	failed := (*exec.ExitError)(nil)
	switch exited := errors.As(err, &failed); {
	case exited && failed.ExitCode() == exitNotFound && missingProgram(text) != nil:
		return missingProgram(text)
	case exited && text != "" && !strings.Contains(text, "\n"):
		return errors.New(text)
	}
	return said.Explain(err)
}

// missingProgram returns an error if a shell printed that it did not find a program.
func missingProgram(text string) error {
	m := regexp.MustCompile(`(?m)([^\s:]+): (?:command )?not found$`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	return fmt.Errorf("%s is not installed", m[1])
}

// current returns the version behind latest or main: the last line that its command prints.
func current(ctx context.Context, version string, how matrix.Installation, at matrix.Adapter) (string, error) {
	command := how.Moving[version]
	if command == "" {
		return "", fmt.Errorf("its entry has no command %s, which must print the version", version)
	}
	out, said := &processgroup.Tail{}, &processgroup.Tail{}
	if err := shell(ctx, command, at, out, said); err != nil {
		return "", fmt.Errorf("the command %s: %w", version, explained(err, said))
	}
	if now := out.Line(); matrix.ValidName(now) && !matrix.Moves(now) {
		return now, nil
	}
	if err := missingProgram(said.String()); err != nil { // before a pipe
		return "", fmt.Errorf("the command %s: %w", version, err)
	}
	return "", said.Explain(fmt.Errorf("the command %s printed %q, which is not a version", version, out.Line()))
}

// showInstallation shows the time and the last line of an installation on a terminal, until stop is called.
func (c *invocation) showInstallation(name string, said *processgroup.Tail) (stop func()) {
	if c.columns() == 0 {
		return func() {}
	}
	done, ended, began := make(chan struct{}), make(chan struct{}), time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(drawInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				_ = c.print(report.Wipe)
				return
			case <-tick.C:
				line := []rune(fmt.Sprintf("installing %s: %s %s", name, time.Since(began).Round(time.Second), said.Line()))
				_ = c.print(report.Wipe + string(line[:min(len(line), c.columns()-1)]))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// shell runs a command for an adapter. When it or ctx ends, so do all processes that it started.
func shell(ctx context.Context, command string, at matrix.Adapter, out, said io.Writer) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = at.Directory, slices.Concat(childEnvironment(os.Environ()), at.Environment)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, said, time.Second
	return processgroup.Run(ctx, cmd)
}
