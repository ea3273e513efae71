package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// scripted is a server that answers isMaster of the proxy, and gives other connections to the test.
func scripted(t *testing.T, hello bson.D) (address string, conns <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	given := make(chan net.Conn, 10)
	go func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			if !first {
				given <- c
				continue
			}
			go func() { // the proxy's own connection
				for {
					h, _, err := wire.ReadMessage(c)
					if err != nil {
						return
					}
					_, _ = c.Write(wire.AppendMsg(nil, 1, h.RequestID, 0, testkit.Raw(t, hello)))
				}
			}()
		}
	}()
	return l.Addr().String(), given
}

// connected returns both ends of a connection through a proxy.
func connected(t *testing.T, hello bson.D) (p *proxy.Proxy, client, server net.Conn) {
	t.Helper()
	address, conns := scripted(t, hello)
	p, err := proxy.Start(proxy.Options{}, address)
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	client, err = net.Dial("tcp", p.Address(address))
	testkit.Check(t, err)
	t.Cleanup(func() { _ = client.Close() })
	server = testkit.Receive(t, "the connection to the server", conns)
	for _, c := range []net.Conn{client, server} {
		testkit.Check(t, c.SetDeadline(time.Now().Add(testkit.Patience)))
	}
	return p, client, server
}

var primary = testkit.D("ok", 1, "maxWireVersion", 25, "setName", "s", "isWritablePrimary", true)

// What no fail point affects passes byte by byte, in both directions, although commands are looked at.
func TestPasses(t *testing.T) {
	doc := func(pairs ...any) bson.Raw { return testkit.Raw(t, testkit.D(pairs...)) }
	sequence := wire.AppendMsg(nil, 7, 0, 0, doc("insert", "c", "$db", "d"))
	section := append(append([]byte{1}, binary.LittleEndian.AppendUint32(nil, uint32(4+len("documents")+1+5))...),
		"documents\x00\x05\x00\x00\x00\x00"...)
	sequence = append(sequence, section...)
	binary.LittleEndian.PutUint32(sequence, uint32(len(sequence)))
	first := append(append([]byte(nil), sequence[:20]...), section...) // the sequence before the body
	first = append(first, sequence[20:len(sequence)-len(section)]...)
	packed, err := wire.Compress(wire.AppendMsg(nil, 8, 0, 0, doc("ping", 1, "$db", "d")), wire.Snappy)
	testkit.Check(t, err)
	wrong := wire.AppendMsg(nil, 9, 0, wire.ChecksumPresent, doc("ping", 1, "$db", "d"))
	wrong[len(wrong)-1]++
	for _, c := range []struct {
		reason  string
		message []byte
	}{
		{"a command", wire.AppendMsg(nil, 1, 0, 0, doc("ping", 1, "$db", "d"))},
		{"a checksum", wire.AppendMsg(nil, 2, 0, wire.ChecksumPresent, doc("find", "c", "$db", "d"))},
		{"an invalid checksum", wrong},
		{"a document sequence", sequence},
		{"a document sequence before the body", first},
		{"a write without an acknowledgement", wire.AppendMsg(nil, 3, 0, wire.MoreToCome, doc("insert", "c", "$db", "d"))},
		{"an unknown flag", wire.AppendMsg(nil, 4, 0, 1<<5, doc("ping", 1))},
		{"exhaust", wire.AppendMsg(nil, 5, 0, wire.ExhaustAllowed, doc("getMore", int64(1), "collection", "c", "$db", "d"))},
		{"a compressed message", packed},
		{"an unknown opcode", wire.AppendMessage(nil, wire.Header{RequestID: 6, OpCode: 77}, []byte("what"))},
		{"a message without a body", wire.AppendMessage(nil, wire.Header{RequestID: 6, OpCode: wire.OpMsg}, nil)},
		{"a section with a negative length", wire.AppendMessage(nil, wire.Header{RequestID: 11, OpCode: wire.OpMsg},
			[]byte("\x00\x00\x00\x00\x00\xf0\xff\xff\xff\x00\x00"))},
		{"a section longer than the message", wire.AppendMessage(nil, wire.Header{RequestID: 12, OpCode: wire.OpMsg},
			[]byte("\x00\x00\x00\x00\x00\xf0\x00\x00\x00\x00\x00"))},
		{"an unknown command", wire.AppendMsg(nil, 13, 0, 0, doc("noSuchCommand", 1, "$db", "d"))},
		{"an empty document", wire.AppendMsg(nil, 10, 0, 0, doc())},
		{"half a message", sequence[:len(sequence)-3]},
		{"half a header", sequence[:7]},
		{"a length that no message has", []byte("\xff\xff\xff\xff and more than a header")},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")},
	} {
		t.Run(c.reason, func(t *testing.T) {
			_, client, server := connected(t, primary)
			_, err := client.Write(c.message)
			testkit.Check(t, err)
			testkit.Check(t, client.(*net.TCPConn).CloseWrite())
			got, err := io.ReadAll(server)
			testkit.Check(t, err)
			testkit.Equal(t, "to the server", string(got), string(c.message))
			_, err = server.Write(c.message)
			testkit.Check(t, err)
			_ = server.Close()
			got, err = io.ReadAll(client)
			testkit.Check(t, err)
			testkit.Equal(t, "to the client", string(got), string(c.message))
		})
	}
}

// The proxy rewrites each reply to hello, of a stream, too, keeps its checksum, and removes compression.
func TestHelloIsRewritten(t *testing.T) {
	p, client, server := connected(t, primary)
	reply := append(bson.D{}, primary...)
	reply = append(reply, testkit.D("hosts", bson.A{"a:1", "B:2"}, "passives", bson.A{"c:3"}, "arbiters", bson.A{"d:4"},
		"me", "a:1", "primary", "b:2",
		"compression", bson.A{"zlib"})...)
	want := append(append(bson.D{}, primary...),
		testkit.D("hosts", bson.A{p.Address("a:1"), p.Address("b:2")}, "passives", bson.A{p.Address("c:3")},
			"arbiters", bson.A{p.Address("d:4")}, "me", p.Address("a:1"), "primary", p.Address("b:2"))...)
	_, err := client.Write(wire.AppendMsg(nil, 1, 0, wire.ExhaustAllowed,
		testkit.Raw(t, testkit.D("hello", 1, "$db", "admin"))))
	testkit.Check(t, err)
	h, _, err := wire.ReadMessage(server)
	testkit.Check(t, err)
	for i, flags := range []wire.Flags{wire.MoreToCome | wire.ChecksumPresent, wire.MoreToCome, 0} {
		to := h.RequestID
		if i > 0 {
			to = int32(100 + i - 1)
		}
		_, err = server.Write(wire.AppendMsg(nil, int32(100+i), to, flags, testkit.Raw(t, reply)))
		testkit.Check(t, err)
		got, body, err := wire.ReadMessage(client)
		testkit.Check(t, err)
		m, err := wire.ParseMsg(got, body) // checks the checksum
		testkit.Check(t, err)
		testkit.Equal(t, "the reply", m.Body.String(), testkit.Raw(t, want).String())
		testkit.Equal(t, "its flags", m.Flags, flags)
		testkit.Equal(t, "its ids", [2]int32{got.RequestID, got.ResponseTo}, [2]int32{int32(100 + i), to})
	}
}

// A closed proxy serves no connection any more.
func TestCloseWaits(t *testing.T) {
	for range 30 { // goroutines that nobody waits for often end in time
		p, _, _ := connected(t, primary)
		p.Close()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if bytes.Contains(stacks, []byte("\ngithub.com/unified-test-runner/utr/embedded/proxy.(*conn).")) {
			t.Fatalf("a connection is served after Close:\n%s", stacks)
		}
	}
}

// A fail point is evaluated for each reply of a stream, as for a command of its own, and ends the stream with an error.
func TestStreamFails(t *testing.T) {
	for command, begin := range map[string]bson.D{
		"hello":   testkit.D("hello", 1, "$db", "admin"),
		"getMore": testkit.D("getMore", int64(1), "collection", "c", "$db", "d"),
	} {
		t.Run(command, func(t *testing.T) {
			_, client, server := connected(t, primary)
			admin := &clientOf{t: t, address: client.RemoteAddr().String()}
			admin.configure(`{"configureFailPoint": "failCommand", "mode": {"skip": 2}, "data": {"failCommands": ["` + command +
				`"], "errorCode": 91}, "$db": "admin"}`)
			_, err := client.Write(wire.AppendMsg(nil, 1, 0, wire.ExhaustAllowed, testkit.Raw(t, begin)))
			testkit.Check(t, err)
			_, _, err = wire.ReadMessage(server)
			testkit.Check(t, err)
			in, to := bufio.NewReader(client), int32(1)
			for id := int32(100); id < 102; id++ { // those that the fail point skips
				_, err = server.Write(wire.AppendMsg(nil, id, to, wire.MoreToCome, testkit.Raw(t, primary)))
				testkit.Check(t, err)
				_, body, err := wire.ReadMessage(in)
				testkit.Check(t, err)
				testkit.Equal(t, "an error in a reply that the fail point skips", bytes.Contains(body, []byte("errmsg")), false)
				to = id
			}
			h, body, err := wire.ReadMessage(in)
			testkit.Check(t, err)
			doc, err := wire.Response(101, h, body)
			testkit.Check(t, err)
			testkit.Equal(t, "the code", doc.Lookup("code").AsInt64(), int64(91))
			_, err = in.ReadByte()
			testkit.Equal(t, "the stream", err, io.EOF)
		})
	}
}

// A server blocks a hello of a stream before it waits for a change of its topology.
func TestStreamBlocks(t *testing.T) {
	const blocks = 2 * time.Second
	for _, c := range []struct {
		reason  string
		counter int64 // in the second reply
		late    bool
	}{
		{"no change: the server would have begun to wait after the block", 1, true},
		{"a change: the server would have found it after the block", 2, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			_, client, server := connected(t, primary)
			admin := &clientOf{t: t, address: client.RemoteAddr().String()}
			admin.configure(fmt.Sprintf(`{"configureFailPoint": "failCommand", "mode": {"skip": 1}, "data":
				{"failCommands": ["hello"], "blockConnection": true, "blockTimeMS": %d}, "$db": "admin"}`, blocks.Milliseconds()))
			_, err := client.Write(wire.AppendMsg(nil, 1, 0, wire.ExhaustAllowed, testkit.Raw(t, testkit.D("hello", 1, "$db", "admin"))))
			testkit.Check(t, err)
			_, _, err = wire.ReadMessage(server)
			testkit.Check(t, err)
			in, to := bufio.NewReader(client), int32(1)
			var written time.Time
			for _, counter := range []int64{1, c.counter} {
				reply := append(slices.Clone(primary), bson.E{Key: "topologyVersion",
					Value: testkit.D("processId", bson.ObjectID{1}, "counter", counter)})
				written = time.Now()
				_, err = server.Write(wire.AppendMsg(nil, to+1, to, wire.MoreToCome, testkit.Raw(t, reply)))
				testkit.Check(t, err)
				_, _, err = wire.ReadMessage(in)
				testkit.Check(t, err)
				if to++; to == 2 {
					time.Sleep(blocks) // the server waits for a change
				}
			}
			testkit.Equal(t, "blocked after the server's wait", time.Since(written) >= blocks, c.late)
		})
	}
}

// clientOf sends commands of the proxy's own, without a handshake.
type clientOf struct {
	t       *testing.T
	address string
}

func (c *clientOf) configure(command string) {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address)
	testkit.Check(c.t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write(wire.AppendMsg(nil, 1, 0, 0, testkit.Extended[bson.Raw](c.t, command)))
	testkit.Check(c.t, err)
	h, body, err := wire.ReadMessage(conn)
	testkit.Check(c.t, err)
	doc, err := wire.Response(1, h, body)
	testkit.Check(c.t, err)
	testkit.Equal(c.t, "the reply", doc.Lookup("ok").AsInt64(), int64(1))
}
