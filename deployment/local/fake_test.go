package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"go.uber.org/goleak"
)

// envFake has the test binary play a mongod, in one of the ways of fakes.
const envFake = "UTR_FAKE_MONGOD"

func TestMain(m *testing.M) {
	if play, found := fakes[os.Getenv(envFake)]; found {
		play(os.Args[1:])
		return
	}
	goleak.VerifyTestMain(m)
}

// fakes are mongods with a flaw each; their arguments are a mongod's.
var fakes = map[string]func(args []string){
	"standalone": func(args []string) {
		port, _ := strconv.Atoi(valueOf(args, "--port"))
		d, err := embedded.Start(context.Background(), embedded.Options{Ports: []int{port}})
		if err != nil {
			fmt.Printf("Failed to set up listener: SocketException: %s\n", err)
			os.Exit(exitNet)
		}
		fmt.Println("waiting for connections")
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		_ = d.Close()
	},
	"refuses its options": func([]string) {
		fmt.Fprintln(os.Stderr, "Error parsing command line: unrecognised option '--nounixsocket'\ntry 'mongod --help' for more information")
		os.Exit(2)
	},
	"does not listen": func([]string) {
		fmt.Println("thinking")
		time.Sleep(time.Hour)
	},
	"does not answer": func(args []string) {
		l, err := net.Listen("tcp", net.JoinHostPort(address, valueOf(args, "--port")))
		if err != nil {
			os.Exit(exitNet)
		}
		for {
			if _, err := l.Accept(); err != nil {
				os.Exit(1)
			}
		}
	},
	"never has a port": func([]string) {
		// Where two bind and then listen, the loser aborts (4.2).
		fmt.Printf("Error listening for new connections on 127.0.0.1:1: Address already in use\n%s", strings.Repeat("a line of a back trace\n", 40))
		os.Exit(14)
	},
	"dies after a while": func(args []string) {
		port, _ := strconv.Atoi(valueOf(args, "--port"))
		if _, err := embedded.Start(context.Background(), embedded.Options{Ports: []int{port}}); err != nil {
			os.Exit(exitNet)
		}
		until := filepath.Join(filepath.Dir(valueOf(args, "--dbpath")), "end")
		for {
			if _, err := os.Stat(until); err == nil {
				fmt.Println("Fatal assertion 4711")
				os.Exit(14)
			}
			time.Sleep(5 * time.Millisecond)
		}
	},
}

// fake gives a release whose mongod is the test binary with a flaw.
func fake(t *testing.T, flaw string) Release {
	t.Helper()
	if fakes[flaw] == nil {
		t.Fatalf("there is no fake %q", flaw)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(envFake, flaw)
	return Release{Mongod: self, Version: Version{8, 0, 0}}
}
