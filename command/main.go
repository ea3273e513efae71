package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/cli"
	"golang.org/x/term"
)

// Engine is a driver under test that a program adds to those of utr.
type Engine struct {
	// Name is for --engine and matrix files: letters, digits, and between them dots,
	// plus and minus signs. Engines of utr keep theirs: reference and driver.
	Name string
	// New makes the engine. A run makes it once and closes it at its end; utr compare
	// and utr matrix make more than one in a process, also at once. It should connect
	// to nothing: that is for the clients of tests. An error ends the command with the
	// exit code of bad usage.
	New func() (engine.Engine, error)
}

// Main runs the command line of the process, with these engines in addition to those
// of utr, and exits with the code of the command. It catches signals and starts its
// own program again for cells of a matrix, so that it is all that func main does.
// A name that an engine cannot have is bad usage.
func Main(engines ...Engine) {
	p := cli.New()
	for _, e := range engines {
		if err := p.AddEngine(e.Name, e.New); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "utr: %s\n", err)
			os.Exit(cli.ExitUsage)
		}
	}
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
