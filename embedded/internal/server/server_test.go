package server_test

import (
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// Connections through a load balancer require loadBalanced: true.
func TestLoadBalancer(t *testing.T) {
	c := cluster(t, server.Sharded, "8.0", 2)
	balancer, err := c.Balance("127.0.0.1:0", 2)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = balancer.Close() })
	services := map[bson.ObjectID]int{}
	for range 4 {
		k := dial(t, balancer.Addr().String())
		if reply := k.call(d("hello", 1)); code(reply) != 354 {
			t.Errorf("without loadBalanced: %v", reply)
		}
		reply := k.call(d("hello", 1, "loadBalanced", true))
		id, ok := reply.Lookup("serviceId").ObjectIDOK()
		if !ok {
			t.Fatalf("no serviceId: %v", reply)
		}
		services[id]++
	}
	if len(services) != 2 {
		t.Errorf("connections by service: %v", services)
	}
	direct := dial(t, c.Members()[0].Address()).call(d("hello", 1, "loadBalanced", true))
	if _, err := direct.LookupErr("serviceId"); err == nil {
		t.Errorf("without a load balancer: %v", direct)
	}
}

// Commands in OP_QUERY and OP_COMPRESSED.
func TestOtherMessages(t *testing.T) {
	exchange := func(version string, message []byte) (wire.Header, []byte) {
		c := pipe(t, joined(t, version, 1, server.Config{}, server.Process{}).Members()[0])
		_, err := c.Write(message)
		testkit.Check(t, err)
		h, body, err := wire.ReadMessage(c.in)
		testkit.Check(t, err)
		return h, body
	}
	query := func(version string, doc bson.D) bson.Raw {
		body := slices.Concat(make([]byte, 4), []byte("admin.$cmd\x00"), make([]byte, 8), testkit.Raw(t, doc))
		_, reply := exchange(version, wire.AppendMessage(nil, wire.Header{OpCode: wire.OpQuery}, body))
		return reply[20:] // the document of an OP_REPLY
	}
	for version, want := range map[string]int64{"4.2": 0, "5.0": 0, "6.0": 352, "9.0": 352} {
		if got := code(query(version, d("ping", 1))); got != want {
			t.Errorf("%s: ping got code %d", version, got)
		}
		if reply := query(version, d("isMaster", 1)); !reply.Lookup("ismaster").Boolean() {
			t.Errorf("%s: isMaster got %v", version, reply)
		}
	}
	for _, compressor := range []wire.Compressor{wire.Snappy, wire.Zlib, wire.Zstd} {
		// the reply is compressed like the request
		packed, err := wire.Compress(wire.AppendMsg(nil, 5, 0, 0, testkit.Raw(t, d("buildInfo", 1, "$db", "admin"))),
			compressor)
		testkit.Check(t, err)
		h, body, used, err := wire.Decompress(exchange("8.0", packed))
		if err != nil || used != compressor {
			t.Fatalf("%d: %v with %d", compressor, err, used)
		}
		if m, err := wire.ParseMsg(h, body); err != nil || m.Body.Lookup("version").StringValue() != "8.0.12" {
			t.Errorf("%d: %v %v", compressor, m, err)
		}
	}
}

// Close interrupts commands that wait, block or stream, and writes to clients that do not read.
func TestCloseWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := joined(t, "8.0", 1, server.Config{Topology: server.ReplicaSet}, server.Process{})
		s := c.Members()[0]
		pipe(t, s).call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data",
			d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 3600000)))
		for _, doc := range []bson.D{d("waits", 1), d("find", "c"), d("serverStatus", 1)} {
			pipe(t, s).send(0, doc) // the reply to serverStatus is not read
		}
		stream := pipe(t, s)
		version := stream.call(d("hello", 1)).Lookup("topologyVersion")
		stream.send(wire.ExhaustAllowed, d("hello", 1, "topologyVersion", version, "maxAwaitTimeMS", 3600000))
		synctest.Wait()
		began := time.Now()
		testkit.Check(t, c.Close())
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if c.Listen(server.Process{}, nil, "127.0.0.1:0") == nil {
			t.Error("a server was added to a closed cluster")
		}
	})
}

// Killed servers accept writes after a restart.
func TestRestart(t *testing.T) {
	for _, kind := range []server.Topology{server.Standalone, server.ReplicaSet, server.Sharded} {
		c := empty(t, "8.0", server.Config{Topology: kind,
			Backend: commands.New(commands.Options{ReplicaSet: kind != server.Standalone, Sharded: kind == server.Sharded})})
		testkit.Check(t, c.Listen(server.Process{}, nil, "127.0.0.1:0"))
		s := c.Members()[0]
		testkit.Check(t, errors.Join(c.Kill(s), c.Restart(s)))
		if reply := dial(t, s.Address()).call(d("insert", "c", "documents", bson.A{bson.D{}}, "$db",
			"db")); reply.Lookup("n").AsInt64() != 1 {
			t.Errorf("%v: got %v", kind, reply)
		}
		if c.StepDown() == nil {
			t.Error("the only member stepped down")
		}
	}
}

// closeHook runs a function before the first of several connections is closed.
type closeHook struct {
	net.Conn
	called *atomic.Bool
	hook   func()
}

func (w *closeHook) Close() error {
	if !w.called.Swap(true) {
		w.hook()
	}
	return w.Conn.Close()
}

// Once a killed server has closed one connection, it does not reply on any other.
func TestKillIsAtomic(t *testing.T) {
	c := joined(t, "8.0", 1, server.Config{}, server.Process{})
	s := c.Members()[0]
	var called atomic.Bool
	var clients [2]*client
	var reply bson.Raw
	for i := range clients {
		near, far := net.Pipe()
		clients[i] = newClient(t, near)
		s.Serve(&closeHook{far, &called, func() { reply = clients[1-i].call(d("hello", 1)) }}, false)
		if reply := clients[i].call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("before: %v", reply)
		}
	}
	testkit.Check(t, c.Kill(s))
	if !called.Load() || reply != nil {
		t.Errorf("hook called: %v, reply %v", called.Load(), reply)
	}
}

func TestInvalidParameters(t *testing.T) {
	for _, params := range []bson.D{d("noSuchParameter", 1), d("ingressRequestAdmissionRatePerSec", 0),
		d("acceptApiVersion2", func() {})} {
		err := empty(t, "8.2", server.Config{}).Listen(server.Process{Parameters: params}, nil, "127.0.0.1:0")
		refused := new(fault.Error)
		if !errors.Is(err, server.ErrParameter) || params[0].Key == "noSuchParameter" && !errors.As(err, &refused) {
			t.Errorf("%v: %v", params, err)
		}
	}
}
