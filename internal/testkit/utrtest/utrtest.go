// Package utrtest starts the command utr in processes of its own, for tests.
// They are ready when they say so, and are waited for with testkit.Patience.
package utrtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// EnvCommand names the command to test. Without it Main builds one.
const EnvCommand = "UTR_TEST_COMMAND"

// Main runs the tests of a package that starts utr: it builds the command once,
// and keeps what runs remember away from the user's ledger. Checks come after
// the tests. It is called by TestMain and does not return.
func Main(m *testing.M, checks ...func() error) { os.Exit(run(m, checks)) }

func run(m *testing.M, checks []func() error) (code int) {
	dir, err := os.MkdirTemp("", "utrtest-")
	if err == nil {
		err = prepare(dir)
	}
	if err == nil {
		code = m.Run()
		for _, check := range checks {
			if err == nil && code == 0 {
				err = check()
			}
		}
	}
	_ = os.RemoveAll(dir) // the tests have succeeded without it
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func prepare(dir string) error {
	// Under nohup the tests ignore a hang-up, and what they start would, too: a
	// signal that is caught has its default action in a child.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if err := os.Setenv(ledger.EnvDir, filepath.Join(dir, "state")); err != nil {
		return err
	}
	if os.Getenv(EnvCommand) != "" {
		return nil
	}
	command := filepath.Join(dir, "utr")
	out, err := exec.Command("go", "build", "-o", command, "github.com/unified-test-runner/utr/cmd/utr").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building utr: %w: %s", err, out)
	}
	return os.Setenv(EnvCommand, command)
}

// Command is the path of utr.
func Command(t testing.TB) string {
	t.Helper()
	command := os.Getenv(EnvCommand)
	if command == "" {
		t.Fatal("TestMain does not call utrtest.Main")
	}
	return command
}

// Place is where processes leave what they leave: temporary folders, and the
// entries of a ledger.
type Place struct {
	t           testing.TB
	Temp, State string
	env         []string
}

// NewPlace gives an empty place, for processes with an environment that holds
// more.
func NewPlace(t testing.TB, env ...string) *Place {
	t.Helper()
	p := &Place{t: t, Temp: t.TempDir(), State: t.TempDir()}
	p.env = append(env, "TMPDIR="+p.Temp, ledger.EnvDir+"="+p.State)
	return p
}

// Entries are the ledger's entries that hold a text, without one that is just
// being removed.
func (p *Place) Entries(text string) (out []string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.State, "ledger", "*.json"))
	testkit.Check(p.t, err)
	for _, f := range files {
		entry, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			p.t.Fatal(err)
		}
		if err == nil && strings.Contains(string(entry), text) {
			out = append(out, string(entry))
		}
	}
	return out
}

// Folders are those that runs have made and not removed.
func (p *Place) Folders() []string {
	p.t.Helper()
	folders, err := filepath.Glob(filepath.Join(p.Temp, "utr-*"))
	testkit.Check(p.t, err)
	return folders
}

// Empty expects that no folder and no entry is left.
func (p *Place) Empty() {
	p.t.Helper()
	if folders, entries := p.Folders(), p.Entries(""); len(folders)+len(entries) > 0 {
		p.t.Errorf("these folders are left: %v; and in the ledger: %v", folders, entries)
	}
}
