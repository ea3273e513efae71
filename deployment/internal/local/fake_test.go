package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// envFake makes the test binary act as one of the fakes of mongod.
const envFake = "UTR_FAKE_MONGOD"

func TestMain(m *testing.M) {
	if fake, found := fakes[os.Getenv(envFake)]; found {
		fake(os.Args[1:])
		return
	}
	utrtest.Main(m, func() error { return goleak.Find() })
}

// fakes act as a mongod with a flaw. They get the arguments of a mongod.
var fakes = map[string]func(args []string){
	"refuses its options": func([]string) {
		fmt.Fprintln(os.Stderr, "Error parsing command line: unrecognised option '--nounixsocket'\ntry 'mongod --help' for more information")
		os.Exit(2)
	},
	"does not listen": func([]string) {
		fmt.Println("thinking")
		signal.Ignore(syscall.SIGTERM)
		select {}
	},
	"does not answer": func(args []string) {
		if _, err := net.Listen("tcp", net.JoinHostPort(address, args[slices.Index(args, "--port")+1])); err != nil {
			os.Exit(exitNet)
		}
		signal.Ignore(syscall.SIGTERM)
		select {}
	},
	"never has a port": func([]string) {
		// If two servers bind before they listen, one of them aborts (4.2).
		fmt.Printf("Error listening for new connections on 127.0.0.1:1: Address already in use\n%s",
			strings.Repeat("a line of a back trace\n", 40))
		os.Exit(14)
	},
	"dies on SIGTERM": func(args []string) {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		serve(args)
		<-terminated
		fmt.Println("Fatal assertion 4711")
		os.Exit(14)
	},
}

// serve starts a standalone that runs until the process ends.
func serve(args []string) {
	port, _ := strconv.Atoi(args[slices.Index(args, "--port")+1])
	if _, err := embedded.Start(context.Background(), embedded.Options{Ports: []int{port}}); err != nil {
		fmt.Printf("Failed to set up listener: SocketException: %s\n", err)
		os.Exit(exitNet)
	}
	fmt.Println("waiting for connections")
}

// bench starts clusters and observes what they leave behind.
type bench struct {
	t       *testing.T
	options Options
	state   string // of the ledger
	folder  string // parent of the clusters' folders
}

// newFlawedBench returns a bench whose mongod is the test binary with a flaw.
func newFlawedBench(t *testing.T, flaw string) *bench {
	t.Helper()
	b := newBench(t)
	self, err := os.Executable()
	testkit.Check(t, err)
	t.Setenv(envFake, flaw)
	b.options.Release.Mongod = self
	return b
}

// newBench returns a bench with the fake mongod.
func newBench(t *testing.T) *bench {
	t.Helper()
	bin := filepath.Join(utrtest.Release(t), "bin")
	b := &bench{t: t, state: t.TempDir(), folder: t.TempDir()}
	t.Setenv("TMPDIR", b.folder)
	book, err := ledger.Open(b.state)
	testkit.Check(t, err)
	release := Release{Mongod: filepath.Join(bin, "mongod"), Mongos: filepath.Join(bin, "mongos"), Version: Version{8, 0, 0}}
	b.options = Options{Release: release, Ledger: book, Ports: new(Ports), timeout: testkit.Patience}
	return b
}

func (b *bench) start() *Cluster {
	b.t.Helper()
	c, err := Start(b.t.Context(), b.options)
	testkit.Check(b.t, err)
	return c
}

// files lists the files in the clusters' folders.
func (b *bench) files() []string {
	files, _ := filepath.Glob(filepath.Join(b.folder, "*", "*"))
	return files
}

func (b *bench) entries() int {
	entries, _ := filepath.Glob(filepath.Join(b.state, "ledger", "*"))
	return len(entries)
}

// close closes a cluster and checks that no file, entry or process is left.
func (b *bench) close(c *Cluster) {
	b.t.Helper()
	hosts := c.Hosts()
	testkit.Check(b.t, errors.Join(c.Close(), c.Close(), os.RemoveAll(c.Folder())))
	b.empty()
	testkit.ErrorContains(b.t, c.Dead())
	for _, host := range hosts {
		if conn, err := net.Dial("tcp", host); err == nil {
			b.t.Error("something listens on its port", conn.Close())
		}
	}
}

func (b *bench) empty() {
	b.t.Helper()
	folders, _ := filepath.Glob(filepath.Join(b.folder, "*"))
	testkit.Equal(b.t, "folders and entries left", fmt.Sprint(folders, b.entries()), "[] 0")
}
