package proxy_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

// pair is two equal deployments: one with its own fail points, one behind a proxy.
type pair struct {
	own, proxied string // addresses of a server or a load balancer
	balanced     bool
	hello        string // the name of the handshake, which 4.2 lacks
}

func newPair(t testing.TB, o embedded.Options) pair { return newPairAt(t, o, 0) }

// newPairAt is newPair with the n-th server.
func newPairAt(t testing.TB, o embedded.Options, n int) pair {
	t.Helper()
	own, behind := embedded.StartT(t, o), embedded.StartT(t, o)
	target := func(d *embedded.Deployment) string {
		hosts, _, _ := strings.Cut(strings.TrimPrefix(d.SingleURI(), "mongodb://"), "/")
		return strings.Split(hosts, ",")[n]
	}
	p, err := proxy.Start(proxy.Options{Balanced: o.Topology == embedded.LoadBalanced}, target(behind))
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	hello := "hello"
	if o.Version == "4.2" {
		hello = "isMaster"
	}
	return pair{own: target(own), proxied: p.Address(target(behind)), balanced: o.Topology == embedded.LoadBalanced,
		hello: hello}
}

// client is a connection that says hello before its first command, again after it was closed.
type client struct {
	t       testing.TB
	address string
	pair    pair
	app     string
	conn    net.Conn
	id      int32
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// run sends a command and renders the reply without what varies.
func (c *client) run(command bson.Raw) string {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		testkit.Check(c.t, err)
		c.conn = conn
		hello := testkit.D(c.pair.hello, 1, "$db", "admin", "helloOk", true, "client",
			testkit.D("application", testkit.D("name", c.app),
				"driver", testkit.D("name", "test", "version", "1"), "os", testkit.D("type", "test")))
		if c.pair.balanced {
			hello = append(hello, testkit.D("loadBalanced", true)...)
		}
		if text := c.exchange(testkit.Raw(c.t, hello)); !strings.Contains(text, "maxWireVersion") {
			c.close() // as a driver does
			return "hello: " + text
		}
	}
	if _, err := command.LookupErr("$db"); err != nil {
		command = testkit.Raw(c.t, append(document(c.t, command), bson.E{Key: "$db", Value: "db"}))
	}
	return c.exchange(command)
}

func (c *client) exchange(command bson.Raw) string {
	c.id++
	_ = c.conn.SetDeadline(time.Now().Add(testkit.Patience))
	_, err := c.conn.Write(wire.AppendMsg(nil, c.id, 0, 0, command))
	var doc bson.Raw
	if err == nil {
		var h wire.Header
		var body []byte
		if h, body, err = wire.ReadMessage(c.conn); err == nil {
			doc, err = wire.Response(c.id, h, body)
		}
	}
	if err != nil {
		c.close()
		return "closed"
	}
	return rendered(c.t, doc)
}

func document(t testing.TB, raw bson.Raw) (d bson.D) {
	t.Helper()
	testkit.Check(t, bson.Unmarshal(raw, &d))
	return d
}

// varying are fields that differ from run to run or from member to member.
var varying = []string{"$clusterTime", "operationTime", "localTime", "connectionId", "electionId", "opTime",
	"lastWrite", "hosts", "me", "primary",
	"topologyVersion", "serviceId", "recoveryToken"}

func rendered(t testing.TB, reply bson.Raw) string {
	t.Helper()
	d := document(t, reply)
	for i := range d {
		if slices.Contains(varying, d[i].Key) {
			d[i].Value = "…"
		}
	}
	if cursor, ok := reply.Lookup("cursor", "id").AsInt64OK(); ok {
		d = append(d, bson.E{Key: "open", Value: cursor != 0})
		for i := range d {
			if d[i].Key == "cursor" {
				d[i].Value = reply.Lookup("cursor", "firstBatch")
			}
		}
	}
	slices.SortFunc(d, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	text, err := bson.MarshalExtJSON(d, false, false)
	testkit.Check(t, err)
	return string(text)
}

// play runs commands on both deployments, and returns the replies, which must be the same.
func (p pair) play(t testing.TB, commands []bson.Raw) string {
	t.Helper()
	var got [2]string
	for i, address := range []string{p.own, p.proxied} {
		c := &client{t: t, address: address, pair: p, app: "app"}
		admin := &client{t: t, address: address, pair: p}
		for _, command := range commands {
			who := c
			if command.Index(0).Key() == "configureFailPoint" {
				who = admin
			}
			got[i] += "\n" + who.run(command)
		}
		c.close()
		admin.close()
	}
	if got[0] != got[1] {
		t.Errorf("%s\nown fail points:%s\nthrough the proxy:%s", texts(commands), got[0], got[1])
	}
	return got[1]
}

func texts(commands []bson.Raw) string {
	var all []string
	for _, c := range commands {
		all = append(all, c.String())
	}
	return fmt.Sprint(strings.Join(all, "\n"))
}
