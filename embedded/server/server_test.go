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

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestLoadBalancer connects with loadBalanced and without.
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
		t.Errorf("connections went to %v", services)
	}
	direct := dial(t, c.Members()[0].Address()).call(d("hello", 1, "loadBalanced", true))
	if _, err := direct.LookupErr("serviceId"); err == nil {
		t.Errorf("not through the balancer: %v", direct)
	}
}

// TestOtherMessages are commands in messages other than a plain OP_MSG.
func TestOtherMessages(t *testing.T) {
	ask := func(version string, message []byte) (wire.Header, []byte) {
		c := pipe(t, joined(t, version, 1, server.Config{}, server.Process{}).Members()[0])
		_, err := c.Write(message)
		testkit.Check(t, err)
		h, body, err := wire.ReadMessage(c.in)
		testkit.Check(t, err)
		return h, body
	}
	query := func(version string, doc bson.D) bson.Raw {
		body := slices.Concat(make([]byte, 4), []byte("admin.$cmd\x00"), make([]byte, 8), testkit.Raw(t, doc))
		_, reply := ask(version, wire.AppendMessage(nil, wire.Header{OpCode: wire.OpQuery}, body))
		return reply[20:] // behind what an OP_REPLY has before its document
	}
	for _, version := range []string{"4.2", "9.0"} {
		if got := code(query(version, d("ping", 1))); got != 352 {
			t.Errorf("%s: ping got code %d", version, got)
		}
		if reply := query(version, d("isMaster", 1)); !reply.Lookup("ismaster").Boolean() {
			t.Errorf("%s: isMaster got %v", version, reply)
		}
	}
	for _, compressor := range []wire.Compressor{wire.Snappy, wire.Zlib, wire.Zstd} { // the reply is compressed like the command
		packed, err := wire.Compress(wire.AppendMsg(nil, 5, 0, 0, testkit.Raw(t, d("buildInfo", 1, "$db", "admin"))), compressor)
		testkit.Check(t, err)
		h, body, used, err := wire.Decompress(ask("8.0", packed))
		if err != nil || used != compressor {
			t.Fatalf("%d: %v with %d", compressor, err, used)
		}
		if m, err := wire.ParseMsg(h, body); err != nil || m.Body.Lookup("version").StringValue() != "8.0.12" {
			t.Errorf("%d: %v %v", compressor, m, err)
		}
	}
}

// TestCloseWhileBusy closes while commands wait, block and stream, and while a
// client does not read.
func TestCloseWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := joined(t, "8.0", 1, server.Config{Kind: server.ReplicaSet}, server.Process{})
		s := c.Members()[0]
		pipe(t, s).call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data",
			d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 3600000)))
		for _, doc := range []bson.D{d("waits", 1), d("find", "c"), d("serverStatus", 1)} {
			pipe(t, s).send(0, doc) // nobody reads the reply to serverStatus
		}
		stream := pipe(t, s)
		version := stream.call(d("hello", 1)).Lookup("topologyVersion")
		stream.send(wire.ExhaustAllowed, d("hello", 1, "topologyVersion", version, "maxAwaitTimeMS", 3600000))
		synctest.Wait()
		began := time.Now()
		testkit.Check(t, c.Close())
		if took := time.Since(began); took != 0 {
			t.Errorf("something waited %v before it ended", took)
		}
		if c.Listen(server.Process{}, nil, "127.0.0.1:0") == nil {
			t.Error("a server was added to a closed cluster")
		}
	})
}

// TestRestart kills servers that listen, starts them again, and writes: a standalone has no terms.
func TestRestart(t *testing.T) {
	for _, kind := range []server.Kind{server.Single, server.ReplicaSet, server.Sharded} {
		c := empty(t, "8.0", server.Config{Kind: kind, Backend: data.New(data.Options{ReplicaSet: kind != server.Single, Sharded: kind == server.Sharded})})
		testkit.Check(t, c.Listen(server.Process{}, nil, "127.0.0.1:0"))
		s := c.Members()[0]
		testkit.Check(t, errors.Join(c.Kill(s), c.Restart(s)))
		if reply := dial(t, s.Address()).call(d("insert", "c", "documents", bson.A{bson.D{}}, "$db", "db")); reply.Lookup("n").AsInt64() != 1 {
			t.Errorf("%v: got %v", kind, reply)
		}
		if c.StepDown() == nil {
			t.Error("a step down of the only member is accepted")
		}
	}
}

// lastWord is the server's end of a connection that runs a function before the
// first of its kind is closed.
type lastWord struct {
	net.Conn
	said *atomic.Bool
	say  func()
}

func (w *lastWord) Close() error {
	if !w.said.Swap(true) {
		w.say()
	}
	return w.Conn.Close()
}

// TestKillIsAtOnce asks over one connection when the server has begun to
// break another: a process that was killed answers on none.
func TestKillIsAtOnce(t *testing.T) {
	c := joined(t, "8.0", 1, server.Config{}, server.Process{})
	s := c.Members()[0]
	var said atomic.Bool
	var clients [2]*client
	var answer bson.Raw
	for i := range clients {
		near, far := net.Pipe()
		clients[i] = newClient(t, near)
		s.Serve(&lastWord{far, &said, func() { answer = clients[1-i].call(d("hello", 1)) }}, false)
		if reply := clients[i].call(d("hello", 1)); code(reply) != 0 {
			t.Fatalf("before: %v", reply)
		}
	}
	testkit.Check(t, c.Kill(s))
	if !said.Load() || answer != nil {
		t.Errorf("asked: %v, answered %v", said.Load(), answer)
	}
}

// TestRefusedParameters starts servers with parameters that they do not take.
func TestRefusedParameters(t *testing.T) {
	for _, params := range []bson.D{d("noSuchParameter", 1), d("ingressRequestAdmissionRatePerSec", 0), d("acceptApiVersion2", func() {})} {
		err := empty(t, "8.2", server.Config{}).Listen(server.Process{Parameters: params}, nil, "127.0.0.1:0")
		refused := new(command.Error)
		if !errors.Is(err, server.ErrParameter) || params[0].Key == "noSuchParameter" && !errors.As(err, &refused) {
			t.Errorf("%v: %v", params, err)
		}
	}
}
