package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// The exit codes of mongod and mongos.
const (
	exitClean     = 0
	exitFailure   = 1
	exitUsage     = 2
	exitAbrupt    = 14
	exitListening = 48
	exitStorage   = 100
)

// Environment is the environment of a process.
type Environment struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	PID            int
	Self           []string // the command for utr, which starts hosts
}

// Run runs mongod or mongos until ctx ends or a client sends shutdown. It returns the exit code of mongod.
func Run(ctx context.Context, mongos bool, words []string, env Environment) int {
	o, err := Parse(mongos, words, env.Getenv(EnvVersion))
	switch {
	case err != nil:
		printLine(env.Stderr, "%s", err)
		return exitUsage
	case o.Help != "":
		printLine(env.Stdout, "%s", o.Help)
		return exitClean
	case o.Version:
		printLine(env.Stdout, "%s", o.versionText())
		return exitClean
	}
	log, err := openLog(o.LogPath, env.Stdout)
	if err != nil {
		printLine(env.Stderr, "cannot open the log: %s", err)
		return exitFailure
	}
	defer log.close()
	code, err := serve(ctx, o, env, log)
	attr := attributes{"exitCode": code}
	if err != nil {
		printLine(env.Stderr, "%s", err)
		attr["error"] = err.Error()
	}
	log.add("Shutting down", attr)
	return code
}

func printLine(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

// serve runs the process after its log was opened.
func serve(ctx context.Context, o *Options, env Environment, log *logFile) (code int, err error) {
	log.add("MongoDB starting", attributes{"pid": env.PID, "version": o.Profile.Text(), "arguments": o.Arguments})
	config, err := o.TLS.config()
	if err != nil {
		return exitFailure, err
	}
	f := newFront(o, env, log, config)
	listeners, err := listen(o)
	defer func() { f.close(listeners) }()
	if err != nil {
		return exitListening, err
	}
	if err := f.begin(ctx); err != nil {
		return exitStorage, err
	}
	for i, l := range listeners {
		f.work.Go(func() { f.accept(l, o.BalancedPort != 0 && i == len(listeners)-1) })
	}
	log.add("Waiting for connections", attributes{"port": o.Port})
	select {
	case code = <-f.ending:
	case <-ctx.Done():
		log.add("Received signal", nil)
	}
	return code, nil
}

// listen opens the public ports, last the port for load balancers. It skips unavailable IPv6 addresses unless all are.
func listen(o *Options) ([]net.Listener, error) {
	var out []net.Listener
	var missing error
	for _, host := range o.Bind {
		l, err := net.Listen(network(host), net.JoinHostPort(host, strconv.Itoa(o.Port)))
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
	l, err := net.Listen(network(o.Bind[0]), net.JoinHostPort(o.Bind[0], strconv.Itoa(o.BalancedPort)))
	if err != nil {
		return out, err
	}
	return append(out, l), nil
}

// network returns the network for a host. mongod uses IPv4 for names with addresses of both kinds.
func network(host string) string {
	if strings.Contains(host, ":") {
		return "tcp6"
	}
	return "tcp4"
}
