// Package utrtest runs the command utr, and a fake mongod, in processes, for tests. All waits are limited by
// testkit.Patience.
package utrtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// envCommand names the command to test. The fake mongod is in the same folder. Without it, Main builds both.
const envCommand = "UTR_TEST_COMMAND"

// The packages of the two programs.
const (
	module     = "github.com/unified-test-runner/utr/"
	utr        = module + "cmd/utr"
	fakeMongod = module + "embedded/internal/fakemongod"
)

// Main runs the tests of a package that starts utr, and then the checks. It builds the
// command once and uses a temporary ledger. TestMain calls it; it does not return.
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
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func prepare(dir string) error {
	// Under nohup, the tests and their children would ignore SIGHUP. If this process catches the signal, it has its
	// default action in children.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if err := os.Setenv(ledger.EnvDir, filepath.Join(dir, "state")); err != nil {
		return err
	}
	if os.Getenv(envCommand) != "" {
		return nil
	}
	out, err := exec.Command("go", "build", "-o", dir, utr, fakeMongod).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building utr and the fake mongod: %w: %s", err, out)
	}
	return os.Setenv(envCommand, filepath.Join(dir, path.Base(utr)))
}

// Command returns the path of utr.
func Command(t testing.TB) string {
	t.Helper()
	command := os.Getenv(envCommand)
	if command == "" {
		t.Fatal("TestMain does not call utrtest.Main")
	}
	return command
}

// Release returns a new release of MongoDB: a folder with bin/mongod and bin/mongos, the fake mongod. The
// variable UTR_SERVER_VERSION is the version that they report.
func Release(t testing.TB) string {
	t.Helper()
	program := filepath.Join(filepath.Dir(Command(t)), path.Base(fakeMongod))
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	testkit.Check(t, os.Mkdir(bin, 0o755))
	for _, name := range []string{"mongod", "mongos"} {
		testkit.Check(t, os.Symlink(program, filepath.Join(bin, name)))
	}
	return dir
}

// Place is where processes of utr leave temporary folders and entries of the ledger.
type Place struct {
	t           testing.TB
	Temp, State string
	env         []string
}

// NewPlace returns an empty place. Its processes have additional environment variables.
func NewPlace(t testing.TB, env ...string) *Place {
	t.Helper()
	p := &Place{t: t, Temp: t.TempDir(), State: t.TempDir()}
	p.env = append(env, "TMPDIR="+p.Temp, ledger.EnvDir+"="+p.State)
	return p
}

// Entries returns the ledger's entries that contain a text.
func (p *Place) Entries(text string) (out []string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.State, "ledger", "*.json"))
	testkit.Check(p.t, err)
	for _, f := range files {
		entry, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) { // utr can remove an entry at any time
			p.t.Fatal(err)
		}
		if err == nil && strings.Contains(string(entry), text) {
			out = append(out, string(entry))
		}
	}
	return out
}

// Folders returns the folders that runs have created and not removed.
func (p *Place) Folders() []string {
	p.t.Helper()
	folders, err := filepath.Glob(filepath.Join(p.Temp, "utr-*"))
	testkit.Check(p.t, err)
	return folders
}

// Empty expects that no folders or entries exist.
func (p *Place) Empty() {
	p.t.Helper()
	if folders, entries := p.Folders(), p.Entries(""); len(folders)+len(entries) > 0 {
		p.t.Errorf("folders left over: %v; entries in the ledger: %v", folders, entries)
	}
}

// Ports is the first port of an Address that is free.
const Ports = 20001

// Address returns a loopback address for the exclusive use of the test, for processes that need fixed ports. The
// system does not use it as the source address of connections.
func Address(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not verified: this system has only one loopback address")
	}
	for {
		address := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
		// This port reserves the address.
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, Ports-1))
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return address
		}
	}
}
