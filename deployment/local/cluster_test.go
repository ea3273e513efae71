//go:build unix

package local

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Every topology is set up from processes, with users and certificates, and clients get in through all its connection
// strings. While it runs, the ledger has its folder and its processes; nothing of it is left afterwards but the logs
// that somebody asks for.
func TestTopologies(t *testing.T) {
	for _, r := range []struct {
		reason           string
		shape            Shape
		processes, hosts int
		uri              string
	}{
		{"a standalone", Shape{}, 1, 1, "mongodb://HOSTS/"},
		{"a standalone with users", Shape{Auth: true}, 1, 1, "mongodb://utr:PASSWORD@HOSTS/"},
		{"members with users", Shape{Topology: ReplicaSet, Auth: true}, 3, 3, "mongodb://utr:PASSWORD@HOSTS/?replicaSet=rs0"},
		{"routers with users and TLS", Shape{Topology: Sharded, Auth: true, TLS: true}, 4, 2, "mongodb://utr:PASSWORD@HOSTS/?tls=true&tlsCAFile="},
		{"routers behind a load balancer", Shape{Topology: LoadBalanced, Mongoses: 1}, 3, 1, "mongodb://HOSTS/?loadBalanced=true"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench(t, "whole")
			b.options.Shape = r.shape
			c := b.start()
			testkit.Check(t, c.Dead())
			hosts := c.Hosts()
			testkit.Equal(t, "processes, hosts and entries", []int{len(c.servers), len(hosts), b.entries()}, []int{r.processes, r.hosts, r.processes + 1})
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
				t.Error("no server has logged anything")
			}
			if r.processes > 1 {
				b.close(c)
				return
			}
			testkit.Check(t, c.Close())
			testkit.Equal(t, "the log alone is kept", []any{b.files(), b.entries()}, []any{[]string{filepath.Join(c.Folder(), "mongod.log")}, 0})
			testkit.Check(t, c.RemoveLogs())
			b.empty()
		})
	}
}

// Each flaw ends in an error that says what there is to know, and leaves nothing
// but the logs.
func TestStartFails(t *testing.T) {
	for _, r := range []struct {
		flaw    string
		timeout time.Duration
		starts  int
		want    []string
	}{
		{"refuses its options", testkit.Patience, 1, []string{"cannot start a standalone of version 8.0.0", "mongod ended: exit status 2 (an option is wrong",
			"    Error parsing command line: unrecognised option '--nounixsocket'", "the logs of the servers are in "}},
		{"does not listen", 300 * time.Millisecond, 1,
			[]string{"waited ", "for mongod to answer on 127.0.0.1:", "the 300ms that a start may take are over", "refused"}},
		{"does not answer", 3 * time.Second, 1, []string{"waited ", "for mongod to answer on 127.0.0.1:", "the 3s that a start may take are over"}},
		{"never has a port", testkit.Patience, portConflicts, []string{"mongod ended: exit status 14", "a line of a back trace"}},
	} {
		t.Run(r.flaw, func(t *testing.T) {
			b := newBench(t, r.flaw)
			b.options.Timeout = r.timeout
			starts := 0
			b.options.Ports.listen = func() (net.Listener, error) {
				starts++
				return net.Listen("tcp", net.JoinHostPort(address, "0"))
			}
			_, err := Start(t.Context(), b.options)
			testkit.Fails(t, err, r.want...)
			testkit.Equal(t, "starts", starts, r.starts)
			var failed *StartError
			if !errors.As(err, &failed) {
				t.Fatalf("%T: %v", err, err)
			}
			testkit.Equal(t, "a log alone is left", []any{b.files(), b.entries()}, []any{[]string{filepath.Join(failed.Logs, "mongod.log")}, 0})
		})
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for want, change := range map[string]func(*Options){
		"cannot start": func(o *Options) { o.Release.Mongod = nowhere },
		"a sharded cluster cannot be had: there is no ": func(o *Options) { o.Shape.Topology, o.Release.Mongos = Sharded, "" },
		"has no load balancing, which came with ":       func(o *Options) { o.Shape.Topology, o.Release.Version = LoadBalanced, Version{5, 0, 6} },
		"there is no topology 9":                        func(o *Options) { o.Shape.Topology = 9 },
		"a temporary folder":                            func(*Options) { t.Setenv("TMPDIR", nowhere) },
	} {
		b := newBench(t, "whole")
		change(&b.options)
		_, err := Start(t.Context(), b.options)
		testkit.Fails(t, err, want)
	}
}

// The end of the context breaks a start off at once; nothing is kept of it.
func TestStartIsInterrupted(t *testing.T) {
	for _, flaw := range []string{"does not listen", "does not answer"} {
		b := newBench(t, flaw)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := Start(ctx, b.options); ended <- err }()
		testkit.Until(t, "the server is started", func() bool { return b.entries() == 2 })
		cancel()
		if err := testkit.Receive(t, "the end of the start", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", flaw, err)
		}
		b.empty()
	}
}

// taken is a listener that stays when it is closed.
type taken struct{ net.Listener }

func (taken) Close() error { return nil }

// A server whose port somebody else took in the meantime is started with
// another one. No port is given twice until it is given back.
func TestPortTaken(t *testing.T) {
	stranger, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	testkit.Check(t, err)
	defer func() { _ = stranger.Close() }()
	b := newBench(t, "whole")
	asked := 0
	b.options.Ports.listen = func() (net.Listener, error) {
		if asked++; asked <= 2 {
			return taken{stranger}, nil
		}
		return net.Listen("tcp", net.JoinHostPort(address, "0"))
	}
	c := b.start()
	testkit.Equal(t, "ports asked for, one taken", []any{asked, c.Hosts()[0] == stranger.Addr().String()}, []any{3, false})
	b.close(c)

	p := Ports{listen: func() (net.Listener, error) { return taken{stranger}, nil }}
	first, err := p.Next()
	testkit.Check(t, err)
	_, err = p.Next()
	testkit.Fails(t, err)
	p.free(first)
	_, err = p.Next()
	testkit.Check(t, err)
}

func TestServerDies(t *testing.T) {
	b := newBench(t, "dies when it is told to")
	c := b.start()
	testkit.Check(t, syscall.Kill(c.servers[0].command.Process.Pid, syscall.SIGTERM))
	testkit.Until(t, "the death is noticed", func() bool { return c.Dead() != nil })
	if died := new(DiedError); !errors.As(c.Dead(), &died) {
		t.Errorf("%T", c.Dead())
	}
	testkit.Fails(t, c.Dead(), "mongod ended: exit status 14 (something that it could not recover from)", "Fatal assertion 4711")
	b.close(c)
}

// What a server started itself, such as a script does, goes with it.
func TestChildrenOfServersGo(t *testing.T) {
	b := newBench(t, "whole")
	pidFile := filepath.Join(t.TempDir(), "pid")
	b.options.Release.Mongod = script(t, filepath.Join(t.TempDir(), "mongod"), "sleep 600 & echo $! >"+pidFile+"\n"+b.options.Release.Mongod+` "$@"`)
	c := b.start()
	pid, err := strconv.Atoi(strings.TrimSpace(testkit.Read(t, pidFile)))
	testkit.Check(t, err)
	b.close(c) // what is behind the script does not listen any more
	testkit.Until(t, "the grandchild is gone", func() bool {
		_, err := ledger.ProcessOf(pid)
		return err != nil || syscall.Kill(pid, 0) != nil
	})
}
