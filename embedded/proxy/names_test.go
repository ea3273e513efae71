package proxy_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A driver that knows one member follows the proxy to each new primary, also to members that only replies to hello
// name, as those that join later. Each has its own fail points.
func TestDiscovery(t *testing.T) {
	d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet})
	p, err := proxy.Start(proxy.Options{}, d.Hosts()[0])
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	// otherwise it may disconnect after 10 s
	o := options.Client().SetServerMonitoringMode(options.ServerMonitoringModePoll)
	c, err := mongo.Connect(o.ApplyURI("mongodb://" + p.Address(d.Hosts()[0]) + "/?replicaSet=rs0&retryWrites=false"))
	testkit.Check(t, err)
	defer func() { testkit.Check(t, c.Disconnect(t.Context())) }()
	insert := func(code int) {
		t.Helper()
		testkit.Until(t, "the driver finds the primary", func() bool {
			_, err := c.Database("db").Collection("c").InsertOne(testkit.Context(t), bson.D{})
			failed := new(mongo.CommandError)
			return code == 0 && err == nil || errors.As(err, failed) && failed.HasErrorCode(code)
		})
	}
	for range 3 {
		admin := &clientOf{t: t, address: p.Address(d.Primary())}
		admin.configure(`{"configureFailPoint": "failCommand", "$db": "admin", "mode": "alwaysOn", "data": {"failCommands": ["insert"], "errorCode": 8}}`)
		insert(8)
		admin.configure(`{"configureFailPoint": "failCommand", "$db": "admin", "mode": "off"}`)
		insert(0)
		testkit.Check(t, d.StepDown())
	}
}

// A server is found by each of its names and addresses, and has the same fail points by the one that it calls itself.
func TestNames(t *testing.T) {
	d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
	host := d.Hosts()[0]
	_, port, _ := net.SplitHostPort(host)
	names := []string{host, "localhost:" + port, "LOCALHOST:" + port}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		t.Cleanup(func() { _ = l.Close() })
		go relay.Accept(l, func(client net.Conn) {
			if server, err := net.Dial("tcp", host); err == nil {
				go relay.Copy(client, server)
			}
		})
		names = append(names, l.Addr().String())
	}
	p, err := proxy.Start(proxy.Options{}, names...)
	testkit.Check(t, err)
	t.Cleanup(p.Close)
	for _, set := range names {
		for _, use := range names {
			address := p.Address(use)
			testkit.Equal(t, "an address of the proxy", strings.HasPrefix(address, "127.0.0.1:"), true)
			c := &client{t: t, address: address, pair: pair{hello: "hello"}}
			(&clientOf{t: t, address: p.Address(set)}).configure(`{"configureFailPoint": "failCommand", "$db": "admin", "mode": {"times": 1},
				"data": {"failCommands": ["ping"], "errorCode": 8}}`)
			for _, want := range []string{"8", "ok"} {
				testkit.Equal(t, "set by "+set+", a command by "+use, gist(t, c.run(testkit.Extended[bson.Raw](t, `{"ping": 1}`))),
					want)
			}
			c.close()
		}
	}
}
