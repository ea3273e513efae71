// Package program is the program utr. Only package utr imports it; its parts are below internal.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/program/internal/cli"
)

// gcPercent is the default of GOGC. The clients of tests live for milliseconds, and little else stays in memory. Our
// 794 reads take a fifth less CPU time than with 100, and 130 instead of 96 MB; 400 saves no more, and takes 190 MB.
const gcPercent = 200

// Engine is an additional driver under test; package utr describes its fields.
type Engine struct {
	Name string
	New  func() (engine.Engine, error)
}

// Main runs the command line of the process and returns its exit code. Package utr describes the rest.
func Main(engines ...Engine) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	p := cli.New()
	for _, e := range engines {
		if err := p.AddEngine(e.Name, e.New); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "utr: %s\n", err)
			return cli.ExitUsage
		}
	}
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	p.Getenv = os.Getenv
	p.Terminal = func() (columns int, ok bool) {
		columns, _, err := term.GetSize(int(os.Stdout.Fd()))
		return columns, err == nil
	}
	return p.Main(interruptible(), os.Args[1:])
}

// repeated is how long a SIGTERM after the first signal counts as a repetition.
const repeated = time.Second

// interruptible returns a context that the first signal cancels, so that fail points are turned off and results are
// printed. The second signal exits immediately, except a SIGTERM that repeats the first one: when utr matrix is
// killed, Linux sends SIGTERM to a cell once for each of its threads. SIGHUP also interrupts, unless nohup ignores
// it. SIGPIPE is ignored: if the reader goes away, writing returns an error.
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
