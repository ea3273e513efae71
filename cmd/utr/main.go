// Command utr runs Unified Test Format suites against a MongoDB driver. This
// file wires streams, signals and the exit code; the commands are in
// internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/unified-test-runner/utr/internal/cli"
	"golang.org/x/term"
)

func main() {
	p := cli.New()
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	p.Getenv = os.Getenv
	p.Terminal = func() (columns int, ok bool) {
		columns, _, err := term.GetSize(int(os.Stdout.Fd()))
		return columns, err == nil
	}
	os.Exit(p.Main(interruptible(), os.Args[1:]))
}

// repeated is how long after the first signal SIGTERM means the same one.
const repeated = time.Second

// interruptible returns a context that the first signal ends, so that fail
// points are turned off and results are printed. The second signal quits at
// once, but for a SIGTERM that repeats the first one: when a night is killed,
// Linux sends it to a cell for each thread of the night. A terminal that goes
// away interrupts as well, unless nohup ignores that; a reader that goes away is
// an error of writing, and kills nothing.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-signals
		cancel()
		for first := time.Now(); ; {
			if s := <-signals; s != syscall.SIGTERM || time.Since(first) > repeated {
				os.Exit(cli.ExitBroken)
			}
		}
	}()
	return ctx
}
