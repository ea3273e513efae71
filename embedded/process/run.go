package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	PID            int
	// Self is the command to which mongod or mongos and their options are added:
	// hosts, and processes that fork, are started with it.
	Self []string
}

func (e Environment) spawn(ctx context.Context, s spec, log *os.File) (whereabouts, error) {
	return spawn(ctx, e.Self, s, log)
}

// Run is mongod or mongos: it serves until ctx ends or a client shuts it down,
// and gives the exit code that mongod would give.
func Run(ctx context.Context, mongos bool, words []string, env Environment) int {
	o, err := Parse(mongos, words, env.Getenv(EnvVersion))
	var usage *UsageError
	switch {
	case errors.As(err, &usage):
		say(env.Stderr, "%s", usage.Text)
		return exitUsage
	case err != nil:
		say(env.Stderr, "%s", err)
		return exitFailure
	case o.Help:
		say(env.Stdout, "%s", o.HelpText())
		return exitClean
	case o.Version:
		say(env.Stdout, "%s", strings.TrimSpace(o.VersionText()))
		return exitClean
	}
	if o.Fork && env.Getenv(envForked) == "" {
		return fork(ctx, o, env)
	}
	if err := rotate(o); err != nil {
		say(env.Stderr, "Can't initialize rotatable log file :: caused by :: Failed to open %q: %s", o.LogPath, reason(err))
		return exitFailure
	}
	j, err := openJournal(o.LogPath, o.Verbosity, o.SlowMS, env.Stdout)
	if err != nil {
		say(env.Stderr, "Can't initialize rotatable log file :: caused by :: Failed to open %q: %s", o.LogPath, reason(err))
		return exitFailure
	}
	code := serve(ctx, o, env, j)
	j.info("CONTROL", 20565, "initandlisten", "Now exiting", nil)
	j.info("CONTROL", 23138, "initandlisten", "Shutting down", bson.D{{Key: "exitCode", Value: code}})
	_ = j.Close() // there is no log to tell it
	return code
}

func say(w io.Writer, format string, args ...any) {
	if w != nil {
		_, _ = fmt.Fprintf(w, format+"\n", args...)
	}
}

// rotate puts the log of an earlier run aside, unless it is to be appended to.
func rotate(o *Options) error {
	if o.LogPath == "" || o.LogAppend {
		return nil
	}
	err := os.Rename(o.LogPath, o.LogPath+"."+time.Now().UTC().Format("2006-01-02T15-04-05"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// serve runs the process with its log open.
func serve(ctx context.Context, o *Options, env Environment, j *journal) int {
	announce(o, env, j)
	undo, code := prepare(o, env, j)
	defer undo()
	if code != exitClean || o.Repair {
		return code
	}
	config, err := o.TLS.config()
	if err != nil {
		j.fail("CONTROL", 20574, "main", "Error during global initialization", bson.D{{Key: "error", Value: bson.D{
			{Key: "code", Value: 140}, {Key: "codeName", Value: "InvalidSSLConfiguration"}, {Key: "errmsg", Value: err.Error()}}}})
		say(env.Stderr, "%s", err)
		return exitFailure
	}
	f := newFront(o, env, j, config)
	listeners, err := listen(o, j)
	if err != nil {
		f.close(listeners)
		j.fail("CONTROL", 20568, "initandlisten", "Error setting up listener", bson.D{{Key: "error", Value: bson.D{
			{Key: "code", Value: 9001}, {Key: "codeName", Value: "SocketException"}, {Key: "errmsg", Value: err.Error()}}}})
		say(env.Stderr, "Error setting up listener: %s", err)
		return exitListening
	}
	if err := f.begin(ctx); err != nil {
		f.close(listeners)
		j.fail("CONTROL", 20557, "initandlisten", "DBException in initAndListen, terminating", bson.D{{Key: "error", Value: err.Error()}})
		say(env.Stderr, "%s", err)
		return exitStorage
	}
	for i, l := range listeners {
		f.work.Go(func() { f.accept(l, o.BalancedPort != 0 && i == len(listeners)-1) })
	}
	j.info("NETWORK", 23016, "listener", "Waiting for connections", bson.D{{Key: "port", Value: o.Port}, {Key: "ssl", Value: map[bool]string{true: "on", false: "off"}[config != nil]}})
	env.ready()
	select {
	case code = <-f.ending:
	case <-ctx.Done():
		j.info("CONTROL", 23377, "SignalHandler", "Received signal", nil)
	}
	f.close(listeners)
	return code
}

// begin makes the process what it is told to be.
func (f *front) begin(ctx context.Context) error {
	switch {
	case f.o.Mongos:
		f.work.Go(f.route)
		return nil
	case f.o.ReplSet != "":
		return f.member()
	}
	return f.alone(ctx)
}

// announce logs who begins.
func announce(o *Options, env Environment, j *journal) {
	j.info("CONTROL", 20698, "-", "***** SERVER RESTARTED *****", nil)
	host, _ := os.Hostname() // "" will do
	about := bson.D{{Key: "pid", Value: env.PID}, {Key: "port", Value: o.Port}, {Key: "dbPath", Value: o.DBPath}, {Key: "architecture", Value: "64-bit"}, {Key: "host", Value: host}}
	j.info("CONTROL", 4615611, "initandlisten", "MongoDB starting", about)
	j.info("CONTROL", 23403, "initandlisten", "Build Info", bson.D{{Key: "buildInfo", Value: bson.D{
		{Key: "version", Value: o.Profile.Text()}, {Key: "gitVersion", Value: "nogitversion"}, {Key: "modules", Value: bson.A{"utr"}}}}})
	j.info("CONTROL", 51765, "initandlisten", "Operating System", bson.D{{Key: "os", Value: bson.D{{Key: "name", Value: runtime.GOOS}, {Key: "version", Value: ""}}}})
	j.info("CONTROL", 21951, "initandlisten", "Options set by command line", bson.D{{Key: "options", Value: o.Parsed}})
}

// prepare takes the folder of the data and writes the file of the process id.
// undo gives both back.
func prepare(o *Options, env Environment, j *journal) (undo func(), code int) {
	undo = func() {}
	if o.DBPath != "" && !o.Mongos {
		held, err := occupy(o.DBPath, env.PID, o.Repair)
		if err != nil {
			j.fail("CONTROL", 20557, "initandlisten", "DBException in initAndListen, terminating", bson.D{{Key: "error", Value: err.Error()}})
			say(env.Stderr, "exception in initAndListen: %s, terminating", err)
			return undo, exitStorage
		}
		undo = held
	}
	if o.PIDFile == "" || o.Repair {
		return undo, exitClean
	}
	if err := os.WriteFile(o.PIDFile, []byte(strconv.Itoa(env.PID)+"\n"), 0o600); err != nil {
		say(env.Stderr, "ERROR: Cannot write pid file to %s: %s", o.PIDFile, reason(err))
		return undo, exitFailure
	}
	before := undo
	return func() {
		_ = os.Remove(o.PIDFile) // it may be gone
		before()
	}, exitClean
}

// occupy takes a folder for data. What is in its lock file tells who has it, or
// that its end was no clean one.
func occupy(path string, pid int, repair bool) (func(), error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("NonExistentPath: Data directory %s not found. Create the missing directory or specify another path using (1) the --dbpath command line option, or (2) by adding the 'storage.dbPath' option in the configuration file", path)
	}
	name := filepath.Join(path, "mongod.lock")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("IllegalOperation: Attempted to create a lock file on a read-only directory: %s", path)
	}
	if err := lock(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("DBPathInUse: Unable to lock the lock file: %s (%s). Another mongod instance is already running on the %s directory", name, reason(err), path)
	}
	err = file.Truncate(0)
	if err == nil && !repair {
		_, err = file.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() {
		_, _ = file.Truncate(0), file.Close()
	}, nil
}

// listen opens the public ports; the last one is that of load balancers, if
// there is one. An address of IPv6 that the machine does not have is left out
// if there are others.
func listen(o *Options, j *journal) ([]net.Listener, error) {
	var out []net.Listener
	var missing error
	for _, host := range o.Bind {
		l, err := net.Listen(network(host), net.JoinHostPort(host, strconv.Itoa(o.Port)))
		switch {
		case err == nil:
		case strings.Contains(host, ":") && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)):
			missing = err
			j.info("NETWORK", 0, "listener", "There is no such address on this machine", bson.D{{Key: "address", Value: host}})
			continue
		default:
			return out, err
		}
		if o.Port == 0 {
			o.Port = l.Addr().(*net.TCPAddr).Port
		}
		j.info("NETWORK", 23015, "listener", "Listening on", bson.D{{Key: "address", Value: l.Addr().String()}})
		out = append(out, l)
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

// network to listen in: of a name that has addresses of both kinds, mongod
// takes that of IPv4.
func network(host string) string {
	if strings.Contains(host, ":") {
		return "tcp6"
	}
	return "tcp4"
}
