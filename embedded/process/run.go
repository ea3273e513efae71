package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
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

// Environment is what a process has around it.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Self           string // the program that starts utr; hosts are started with it
}

// Run is mongod or mongos: it serves until ctx ends or a client shuts it down,
// and returns the exit code that mongod would have.
func Run(ctx context.Context, mongos bool, words []string, env Environment) int {
	say := func(text any) { _, _ = fmt.Fprintln(env.Stderr, text) }
	if !mongos && slices.Equal(words, []string{hostOption}) {
		if err := serveHost(ctx, env.Stdin, env.Stdout); err != nil {
			say(err)
			return exitFailure
		}
		return exitClean
	}
	o, err := Parse(mongos, words, env.Getenv(EnvVersion))
	if err != nil {
		say(err)
		return exitUsage
	}
	if o.Text != "" {
		_, _ = fmt.Fprintln(env.Stdout, o.Text)
		return exitClean
	}
	out := env.Stdout
	if o.LogPath != "" {
		file, err := openLog(o.LogPath)
		if err != nil {
			say(fmt.Errorf("cannot open the log: %w", err))
			return exitFailure
		}
		defer func() { _ = file.Close() }() // there is no log to report it to
		out = file
	}
	log := newLog(out)
	code, err := serve(ctx, o, env.Self, log)
	if err != nil {
		say(err)
		log = log.With("error", err.Error())
	}
	log.Info("Shutting down", "exitCode", code)
	return code
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// newLog writes a JSON document a line, with the field names of mongod's log.
func newLog(out io.Writer) *slog.Logger {
	rename := func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) > 0:
		case a.Key == slog.TimeKey:
			return slog.Group("t", "$date", a.Value.Time().Format("2006-01-02T15:04:05.000-07:00"))
		case a.Key == slog.LevelKey:
			return slog.String("s", "I")
		}
		return a
	}
	handler := slog.NewJSONHandler(out, &slog.HandlerOptions{ReplaceAttr: rename})
	return slog.New(handler).With("c", "-", "id", 0, "ctx", "utr").WithGroup("attr")
}

// serve runs the process with its log open.
func serve(ctx context.Context, o *Options, self string, log *slog.Logger) (code int, err error) {
	log.Info("MongoDB starting", "pid", os.Getpid(), "version", o.Profile.Text(), "arguments", o.Arguments)
	config, err := o.tlsConfig()
	if err != nil {
		return exitFailure, err
	}
	f := newFront(o, self, log, config)
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
	log.Info("Waiting for connections", "port", o.Port)
	select {
	case code = <-f.ending:
	case <-ctx.Done():
		log.Info("Received signal")
	}
	return code, nil
}

// listen opens the public ports. The last one is that of load balancers, if there
// is one. An IPv6 address that the machine does not have is left out if there are
// others.
func listen(o *Options) (out []net.Listener, err error) {
	var addresses []string
	for _, host := range o.Bind {
		addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(o.Port)))
	}
	if o.BalancedPort != 0 {
		addresses = append(addresses, net.JoinHostPort(o.Bind[0], strconv.Itoa(o.BalancedPort)))
	}
	var missing error
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			out = append(out, l)
		case address[0] == '[' && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)):
			missing = err
		default:
			return out, err
		}
	}
	if len(out) == 0 {
		return nil, missing
	}
	return out, nil
}
