package bench

import (
	"context"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/proxy"
	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
)

// BenchmarkProxy sends one command through the proxy for fail points, which none of them affects, and to the same
// server directly. A relay that only copies bytes is what a process between them costs in any case.
func BenchmarkProxy(b *testing.B) {
	server := embedded.StartT(b, embedded.Options{})
	p, err := proxy.Start(proxy.Options{}, server.Hosts()...)
	testkit.Check(b, err)
	b.Cleanup(p.Close)
	ctx := context.Background()
	for _, way := range []struct{ name, address string }{{"direct", server.Hosts()[0]},
		{"relay", relayed(b, server.Hosts()[0])}, {"proxy", p.Address(server.Hosts()[0])}} {
		client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + way.address + "/?directConnection=true"))
		testkit.Check(b, err)
		b.Cleanup(func() { _ = client.Disconnect(ctx) })
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				testkit.Check(b, client.Database("db").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err())
			}
		})
	}
}

// BenchmarkProxyRun runs the official suites of retryable reads with the fail points of the servers, and with the fail
// points of the proxy.
func BenchmarkProxyRun(b *testing.B) {
	suites := suitetest.Load(b, testkit.Official(b, "retryable-reads"))
	for _, mode := range []deployment.FailPointMode{deployment.FailPointsServer, deployment.FailPointsProxy} {
		b.Run("fail-points="+string(mode), func(b *testing.B) {
			runAll(b, suites, 1, "reference",
				deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.ReplicaSet}, FailPointMode: mode})
		})
	}
}

// relayed returns the address of a relay in front of a server.
func relayed(b *testing.B, server string) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(b, err)
	b.Cleanup(func() { _ = l.Close() })
	go relay.Accept(l, func(client net.Conn) {
		go func() {
			if behind, err := net.Dial("tcp", server); err == nil {
				relay.Copy(client, behind)
			}
		}()
	})
	return l.Addr().String()
}
