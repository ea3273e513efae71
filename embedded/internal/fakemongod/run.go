package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/unified-test-runner/utr/internal/net/relay"
)

// exitCode is an exit code of mongod and mongos, and the cause with which a front ends.
type exitCode int

const (
	exitClean     exitCode = 0
	exitFailure   exitCode = 1
	exitUsage     exitCode = 2
	exitAbrupt    exitCode = 14
	exitListening exitCode = 48
	exitStorage   exitCode = 100
)

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// Environment is the environment of a process.
type Environment struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Self           string // path of this program, which starts hosts
}

// Run runs mongod or mongos until ctx ends or a client sends shutdown. It returns the exit code of mongod.
func Run(ctx context.Context, mongos bool, words []string, env Environment) int {
	o, err := Parse(mongos, words, env.Getenv(EnvVersion))
	switch {
	case err != nil:
		fmt.Fprintln(env.Stderr, err)
		return int(exitUsage)
	case o.Print != "":
		fmt.Fprintln(env.Stdout, o.Print)
		return int(exitClean)
	}
	f := &front{o: o, self: env.Self, id: rand.Text(), log: newLog(env.Stdout), state: stateOther}
	if o.LogPath != "" {
		if f.logFile, err = os.OpenFile(o.LogPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			fmt.Fprintln(env.Stderr, "cannot open the log:", err)
			return int(exitFailure)
		}
		defer f.logFile.Close()
		f.log = newLog(f.logFile)
	}
	code, err := f.run(ctx)
	attr := []any{"exitCode", int(code)}
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		attr = append(attr, "error", err.Error())
	}
	f.log.Info("Shutting down", slog.Group("attr", attr...))
	return int(code)
}

// run runs the process after its log was opened.
func (f *front) run(ctx context.Context) (code exitCode, err error) {
	f.log.Info("MongoDB starting",
		slog.Group("attr", "pid", os.Getpid(), "version", f.o.Version.Text(), "arguments", f.o.Arguments))
	if f.tls, err = f.o.TLS.config(); err != nil {
		return exitFailure, err
	}
	listeners, err := listen(f.o)
	f.ctx, f.end = context.WithCancelCause(ctx)
	defer f.work.Wait()
	defer f.end(nil)
	for _, l := range listeners {
		defer l.Close()
	}
	if err != nil {
		return exitListening, err
	}
	if err := f.begin(); err != nil {
		return exitStorage, err
	}
	f.work.Go(func() {
		if f.o.Mongos {
			f.joinAsRouter() // meanwhile clients wait
		}
		for i, l := range listeners {
			if f.ctx.Err() == nil {
				balanced := f.o.BalancedPort != 0 && i == len(listeners)-1
				f.work.Go(func() { relay.Accept(l, func(nc net.Conn) { f.work.Go(func() { f.open(nc, balanced) }) }) })
			}
		}
	})
	f.log.Info("Waiting for connections", slog.Group("attr", "port", f.o.Port))
	<-f.ctx.Done()
	if !errors.As(context.Cause(f.ctx), &code) {
		f.log.Info("Received signal")
	}
	return code, nil
}

// listen opens the public ports, last the port for load balancers. It skips unavailable IPv6 addresses unless all are.
func listen(o *Options) ([]net.Listener, error) {
	open := func(host string, port int) (net.Listener, error) {
		network := "tcp4" // like mongod for names with addresses of both kinds
		if strings.Contains(host, ":") {
			network = "tcp6"
		}
		return net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	var out []net.Listener
	var missing error
	for _, host := range o.Bind {
		l, err := open(host, o.Port)
		switch {
		case err == nil:
			out = append(out, l)
		case strings.Contains(host, ":") && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)):
			missing = err
		default:
			return out, err
		}
	}
	if len(out) == 0 {
		return nil, missing
	}
	if o.BalancedPort == 0 {
		return out, nil
	}
	l, err := open(o.Bind[0], o.BalancedPort)
	if err != nil {
		return out, err
	}
	return append(out, l), nil
}
