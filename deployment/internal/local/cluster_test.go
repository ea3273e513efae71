//go:build unix

package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Every topology can be started, with users and certificates, and clients can connect with its connection strings.
// While it runs, the ledger has entries for its folder and processes. Close removes everything except the logs.
func TestTopologies(t *testing.T) {
	for _, r := range []struct {
		reason           string
		shape            Shape
		processes, hosts int
		uri              string
	}{
		{"a standalone", Shape{}, 1, 1, "mongodb://HOSTS/"},
		{"a standalone with users", Shape{Auth: true}, 1, 1, "mongodb://utr:PASSWORD@HOSTS/"},
		{"members with users", Shape{Topology: embedded.ReplicaSet, Auth: true}, 3, 3, "mongodb://utr:PASSWORD@HOSTS/?replicaSet=rs0"},
		{"routers with users and TLS", Shape{Topology: embedded.Sharded, Auth: true, TLS: true}, 4, 2,
			"mongodb://utr:PASSWORD@HOSTS/?tls=true&tlsCAFile="},
		{"routers behind a load balancer", Shape{Topology: embedded.LoadBalanced, Mongoses: 1}, 3, 1,
			"mongodb://HOSTS/?loadBalanced=true"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench(t)
			b.options.Shape = r.shape
			c := b.start()
			testkit.Check(t, c.Dead())
			hosts := c.Hosts()
			testkit.Equal(t, "processes, hosts and entries", []int{len(c.servers), len(hosts), b.entries()},
				[]int{r.processes, r.hosts, r.processes + 1})
			testkit.Equal(t, "a password", c.Password() != "", r.shape.Auth)
			want := strings.NewReplacer("PASSWORD", c.Password(), "HOSTS", strings.Join(hosts, ",")).Replace(r.uri)
			all, single := c.URIs()
			if all != want && (!r.shape.TLS || !strings.HasPrefix(all, want)) {
				t.Errorf("its connection string is %s, want %s", all, want)
			}
			for _, uri := range []string{all, single} {
				client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitoringMode(options.ServerMonitoringModePoll))
				testkit.Check(t, err)
				testkit.Check(t, errors.Join(client.Ping(testkit.Context(t), readpref.Nearest()), client.Disconnect(t.Context())))
			}
			if c.Log(time.Time{}, time.Now()) == nil {
				t.Error("the servers have not logged anything")
			}
			if r.processes > 1 {
				b.close(c)
				return
			}
			testkit.Check(t, c.Close())
			testkit.Equal(t, "files and entries", []any{b.files(), b.entries()},
				[]any{[]string{filepath.Join(c.Folder(), "mongod.log")}, 0})
			testkit.Check(t, os.RemoveAll(c.Folder()))
			b.empty()
		})
	}
}

// A failed start returns a descriptive error and leaves only the logs.
func TestStartFails(t *testing.T) {
	for _, r := range []struct {
		flaw    string
		timeout time.Duration
		starts  int
		want    []string
	}{
		{"refuses its options", testkit.Patience, 1,
			[]string{"cannot start a standalone of version 8.0.0", "mongod ended: exit status 2 (an option is invalid",
				"    Error parsing command line: unrecognised option '--nounixsocket'", "the logs of the servers are in "}},
		{"does not listen", 300 * time.Millisecond, 1,
			[]string{"waited ", "for mongod to answer on 127.0.0.1:", "the start timed out after 300ms", "refused"}},
		{"does not answer", 3 * time.Second, 1,
			[]string{"waited ", "for mongod to answer on 127.0.0.1:", "the start timed out after 3s"}},
		{"never has a port", testkit.Patience, portConflicts,
			[]string{"mongod ended: exit status 14", "a line of a back trace"}},
	} {
		t.Run(r.flaw, func(t *testing.T) {
			b := newFlawedBench(t, r.flaw)
			b.options.timeout = r.timeout
			starts := 0
			b.options.Ports.listen = func() (net.Listener, error) {
				starts++
				return net.Listen("tcp", net.JoinHostPort(address, "0"))
			}
			_, err := Start(t.Context(), b.options)
			testkit.ErrorContains(t, err, r.want...)
			testkit.Equal(t, "starts", starts, r.starts)
			var failed *StartError
			if !errors.As(err, &failed) {
				t.Fatalf("%T: %v", err, err)
			}
			testkit.Equal(t, "files and entries", []any{b.files(), b.entries()},
				[]any{[]string{filepath.Join(failed.Logs, "mongod.log")}, 0})
		})
	}
}

func TestInvalidOptions(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for want, change := range map[string]func(*Options){
		"cannot start":                func(o *Options) { o.Release.Mongod = nowhere },
		"a sharded cluster requires ": func(o *Options) { o.Shape.Topology, o.Release.Mongos = embedded.Sharded, "" },
		"does not support load balancers: they require 5.": func(o *Options) {
			o.Shape.Topology,
				o.Release.Version = embedded.LoadBalanced, Version{5, 0, 6}
		},
		"a temporary folder": func(*Options) { t.Setenv("TMPDIR", nowhere) },
	} {
		b := newBench(t)
		change(&b.options)
		_, err := Start(t.Context(), b.options)
		testkit.ErrorContains(t, err, want)
	}
}

// Canceling the context interrupts a start and leaves nothing.
func TestStartIsInterrupted(t *testing.T) {
	for _, flaw := range []string{"does not listen", "does not answer"} {
		b := newFlawedBench(t, flaw)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := Start(ctx, b.options); ended <- err }()
		testkit.Until(t, "the server is started", func() bool { return b.entries() == 2 })
		cancel()
		if err := testkit.Receive(t, "Start returns", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", flaw, err)
		}
		b.empty()
	}
}

// taken is a listener that ignores Close.
type taken struct{ net.Listener }

func (taken) Close() error { return nil }

// A server whose port another process has taken is started again with another port. No port is returned twice before it
// is freed.
func TestPortTaken(t *testing.T) {
	other, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	testkit.Check(t, err)
	defer func() { _ = other.Close() }()
	b := newBench(t)
	calls := 0
	b.options.Ports.listen = func() (net.Listener, error) {
		if calls++; calls <= 2 {
			return taken{other}, nil
		}
		return net.Listen("tcp", net.JoinHostPort(address, "0"))
	}
	c := b.start()
	testkit.Equal(t, "ports requested, and the taken one used", []any{calls, c.Hosts()[0] == other.Addr().String()},
		[]any{3, false})
	b.close(c)

	p := Ports{listen: func() (net.Listener, error) { return taken{other}, nil }}
	first, err := p.Next()
	testkit.Check(t, err)
	_, err = p.Next()
	testkit.ErrorContains(t, err)
	p.free(first)
	_, err = p.Next()
	testkit.Check(t, err)
}

func TestServerDies(t *testing.T) {
	b := newFlawedBench(t, "dies on SIGTERM")
	c := b.start()
	testkit.Check(t, syscall.Kill(c.servers[0].command.Process.Pid, syscall.SIGTERM))
	testkit.Until(t, "Dead returns an error", func() bool { return c.Dead() != nil })
	if died := new(DiedError); !errors.As(c.Dead(), &died) {
		t.Errorf("%T", c.Dead())
	}
	testkit.ErrorContains(t, c.Dead(), "mongod ended: exit status 14 (unrecoverable error)", "Fatal assertion 4711")
	b.close(c)
}

// Close also kills the children of a server. Here the server is a script.
func TestChildrenOfServersAreKilled(t *testing.T) {
	b := newBench(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	b.options.Release.Mongod = script(t, filepath.Join(t.TempDir(), "mongod"), "sleep 600 & echo $! >"+pidFile+"\n"+
		b.options.Release.Mongod+` "$@"`)
	c := b.start()
	pid, err := strconv.Atoi(strings.TrimSpace(testkit.Read(t, pidFile)))
	testkit.Check(t, err)
	b.close(c) // the server behind the script no longer listens
	testkit.Until(t, "the grandchild has ended", func() bool {
		_, err := ledger.ProcessOf(pid)
		return err != nil || syscall.Kill(pid, 0) != nil
	})
}
