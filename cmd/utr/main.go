// Command utr runs Unified Test Format suites against a MongoDB driver. This
// file wires streams, signals and the exit code; the commands are in
// internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

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

// interruptible gives a context that the first signal ends, so that fail
// points are turned off and what ran is printed. The second signal quits at
// once. A terminal that goes away interrupts as well, unless nohup wants that to
// be ignored; and a reader that goes away is an error of writing, which kills
// nothing.
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
		<-signals
		os.Exit(cli.ExitBroken)
	}()
	return ctx
}
