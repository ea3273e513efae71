package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(start(ctx))
}

// start runs a mongos if the program is named so, a host if its argument says so, and otherwise a mongod.
func start(ctx context.Context) int {
	words := os.Args[1:]
	if slices.Equal(words, []string{HostOption}) {
		if err := Host(ctx, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return int(exitFailure)
		}
		return int(exitClean)
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot find this program:", err)
		return int(exitFailure)
	}
	mongos := strings.HasPrefix(filepath.Base(os.Args[0]), "mongos")
	return Run(ctx, mongos, words, Environment{
		Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Self: self,
	})
}
