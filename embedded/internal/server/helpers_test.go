package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

var d = testkit.D // a document of keys and values in turn

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is a backend for tests of the protocol.
type stub struct {
	ended   atomic.Int32  // number of ended waits commands
	stopped atomic.Bool   // the next call of OperationTime panics
	seen    atomic.Uint32 // seconds of the cluster time of a client
}

func (s *stub) Rows() []commands.Row {
	runs := func(run func(*commands.Request) (commands.Response, error)) parser {
		return func(r *commands.Request) (func() (commands.Response, error), error) {
			return func() (commands.Response, error) { return run(r) }, nil
		}
	}
	fine := runs(func(*commands.Request) (commands.Response, error) { return succeeds(), nil })
	fails := func(err error) parser {
		return runs(func(*commands.Request) (commands.Response, error) { return commands.Response{}, err })
	}
	asked := runs(func(r *commands.Request) (commands.Response, error) {
		return commands.Response{}, fault.Errorf(r.Body.Index(0).Value().Int32(), "as requested")
	})
	return []commands.Row{
		{Name: "find", Parse: fine, Transactional: true, ReadConcern: commands.ReadConcernLevels, API: "1"},
		{Name: "getMore", OnSecondary: true, ReadConcern: commands.ReadConcernLevels, NoAfterClusterTime: true,
			Parse: runs(func(r *commands.Request) (commands.Response, error) {
				// of a change stream, if it fails
				if code, ok := r.Body.Lookup("fails").AsInt64OK(); ok {
					return commands.Response{IsChangeStream: true}, fault.Errorf(int32(code), "as requested")
				}
				return succeeds(), nil
			})},
		{Name: "aggregate", Parse: fine, WriteConcern: true, ReadConcern: commands.ReadConcernLevels, API: "1"},
		{Name: "insert", Parse: fine, Write: true, Retryable: true, Transactional: true, Statements: "documents", API: "1"},
		{Name: "fails", Write: true, Retryable: true, Parse: asked},
		{Name: "ends", Write: true, Transactional: true, EndsTransaction: true, Parse: asked},
		{Name: "searches", Parse: fine, Write: true, NoWriteConcern: true},
		{Name: "commitTransaction", Parse: fine, Retryable: true, Transactional: true, AdminOnly: true, WriteConcern: true,
			EndsTransaction: true, StartTransactionError: "Cannot start a transaction with a commit", API: "1"},
		{Name: "bulkWrite", Parse: fine, Write: true, AdminOnly: true, Since: "8.0"},
		{Name: "panics", OnSecondary: true, Parse: runs(func(*commands.Request) (commands.Response, error) { panic("ouch") })},
		{Name: "breaks", OnSecondary: true, Parse: fails(errors.New("broken"))},
		{Name: "closes", OnSecondary: true, Parse: fails(failpoint.ErrClose)},
		{Name: "closesAfter", OnSecondary: true, Parse: runs(func(r *commands.Request) (commands.Response, error) {
			r.HangUp()
			return commands.Response{}, nil
		})},
		{Name: "waits", OnSecondary: true, Parse: runs(func(r *commands.Request) (commands.Response, error) {
			<-r.Context.Done()
			s.ended.Add(1)
			return commands.Response{}, r.Context.Err()
		})},
		{Name: "counts", OnSecondary: true, Parse: runs(counting)},
		{Name: "stopsTheClock", OnSecondary: true, Parse: runs(func(*commands.Request) (commands.Response, error) {
			s.stopped.Store(true)
			return succeeds(), nil
		})},
		{Name: "ended", OnSecondary: true, Parse: runs(func(*commands.Request) (commands.Response, error) {
			return commands.Response{Fields: bson.D{{Key: "n", Value: s.ended.Load()}}}, nil
		})},
	}
}

// counting streams 1, 2 and 3 if the client allows exhaust.
func counting(r *commands.Request) (commands.Response, error) {
	n := int32(0)
	var next func() (commands.Response, error)
	next = func() (commands.Response, error) {
		n++
		out := commands.Response{Fields: bson.D{{Key: "n", Value: n}}}
		if r.ExhaustAllowed && n < 3 {
			out.Stream = next
		}
		return out, nil
	}
	return next()
}

type parser = func(*commands.Request) (func() (commands.Response, error), error)

func succeeds() commands.Response {
	return commands.Response{Fields: bson.D{{Key: "n", Value: int32(1)}}, TriedToWrite: true}
}

func (s *stub) OperationTime() bson.Timestamp {
	if s.stopped.CompareAndSwap(true, false) {
		panic("ouch")
	}
	return bson.Timestamp{T: 100, I: 1}
}

func (*stub) KillSessions([]bson.Raw) {}
func (*stub) Scripting() bool         { return true }
func (*stub) EndTerm(int64)           {}

func (s *stub) ClusterTime(seen bson.Timestamp) bson.Timestamp {
	s.seen.CompareAndSwap(0, seen.T)
	return bson.Timestamp{T: max(100, s.seen.Load()), I: 1}
}

// empty returns a cluster without servers. The default backend is a stub.
func empty(t testing.TB, name string, config server.Config) *server.Cluster {
	t.Helper()
	var err error
	config.Version, err = version.Named(name)
	testkit.Check(t, err)
	if config.SetName = "rs"; config.Backend == nil {
		config.Backend = new(stub)
	}
	c := server.NewCluster(config)
	t.Cleanup(func() { testkit.Check(t, c.Close()) })
	return c
}

func cluster(t testing.TB, kind server.Topology, version string, n int) *server.Cluster {
	t.Helper()
	c := empty(t, version, server.Config{Topology: kind})
	testkit.Check(t, c.Listen(server.Process{}, nil, slices.Repeat([]string{"127.0.0.1:0"}, n)...))
	return c
}

// joined returns a cluster of servers that do not listen, so that they can run in a synctest bubble.
func joined(t testing.TB, version string, n int, config server.Config, p server.Process) *server.Cluster {
	t.Helper()
	c := empty(t, version, config)
	if config.Topology == server.ReplicaSet {
		members := make([]int, n)
		for i := range n {
			members[i] = i
		}
		testkit.Check(t, c.Configure(configuration(t, 1, members...)))
	}
	for i := range n {
		_, err := c.Join(fmt.Sprintf("h:%d", i), p)
		testkit.Check(t, err)
	}
	return c
}

func configuration(t testing.TB, revision int, members ...int) server.SetConfig {
	list := bson.A{}
	for _, i := range members {
		list = append(list, d("_id", i, "host", fmt.Sprintf("h:%d", i)))
	}
	set, err := server.ParseSetConfig(testkit.Raw(t, d("_id", "rs", "version", revision, "members", list)))
	testkit.Check(t, err)
	return set
}

type client struct {
	t testing.TB
	net.Conn
	in       *bufio.Reader
	last     wire.Header // of the last reply
	more     bool        // the last reply had moreToCome
	topology string      // latest topologyVersion, as Extended JSON
	cursor   string      // the latest cursor, as Extended JSON
}

const request = 5

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { _ = nc.Close() })
	return &client{t: t, Conn: nc, in: bufio.NewReader(nc)}
}

// pipe connects to a server in memory.
func pipe(t testing.TB, s *server.Server) *client {
	near, far := net.Pipe()
	s.Serve(far, false)
	return newClient(t, near)
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	testkit.Check(t, err)
	return newClient(t, nc)
}

// send sends a command, by default to the database admin, without waiting. receive reports a closed connection.
func (c *client) send(flags wire.Flags, doc bson.D) {
	c.t.Helper()
	if !slices.ContainsFunc(doc, func(e bson.E) bool { return e.Key == "$db" }) {
		doc = append(slices.Clone(doc), bson.E{Key: "$db", Value: "admin"})
	}
	message := wire.AppendMsg(nil, request, 0, flags, testkit.Raw(c.t, doc))
	go func() { _, _ = c.Write(message) }()
}

// receive reads a reply, nil if the connection is closed.
func (c *client) receive() (bson.Raw, wire.Flags) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		c.t.Fatal(err)
	}
	h, body, err := wire.ReadMessage(c.in)
	if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset") {
		return nil, 0
	}
	testkit.Check(c.t, err)
	c.last = h
	m, err := wire.ParseMsg(h, body)
	testkit.Check(c.t, err)
	return m.Body, m.Flags
}

func (c *client) call(doc bson.D) bson.Raw {
	c.t.Helper()
	c.send(0, doc)
	reply, _ := c.receive()
	return reply
}

func code(reply bson.Raw) int64 {
	n, _ := reply.Lookup("code").AsInt64OK()
	return n
}
