package deployment

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// The proxy executes fail points in front of every kind of deployment. The driver gets only its addresses. The servers
// never have a fail point.
func TestFronted(t *testing.T) {
	without := bson.D{{Key: "enableTestCommands", Value: false}}
	user := []embedded.User{{Name: "u", Password: "p"}}
	set, balanced := embedded.Options{Topology: embedded.ReplicaSet}, embedded.Options{Topology: embedded.LoadBalanced}
	const srv = "mongodb+srv://" + srvName + "/?tls=false"
	for _, c := range []struct {
		name    string
		o       embedded.Options
		mode    FailPointMode
		proxied bool
		uri     string // "": the deployment's; HOST and PORT belong to the first server
		txt     string // record of the SRV name
	}{
		{"test commands", embedded.Options{}, FailPointsAuto, false, "", ""},
		{"the default mode", embedded.Options{}, "", false, "", ""},
		{"no test commands", embedded.Options{Parameters: without}, FailPointsAuto, true, "", ""},
		{"no test commands, and none wanted", embedded.Options{Parameters: without}, FailPointsServer, false, "", ""},
		{"a standalone", embedded.Options{}, FailPointsProxy, true, "", ""},
		{"a replica set", embedded.Options{Topology: embedded.ReplicaSet, Parameters: without}, FailPointsAuto, true, "", ""},
		{"a sharded cluster", embedded.Options{Topology: embedded.Sharded, Parameters: without}, FailPointsAuto,
			true, "", ""},
		{"load balanced", embedded.Options{Topology: embedded.LoadBalanced, Parameters: without}, FailPointsAuto,
			true, "", ""},
		{"TLS and SCRAM", embedded.Options{Topology: embedded.ReplicaSet, TLS: true, Users: user}, FailPointsProxy,
			true, "", ""},
		{"load balanced, TLS", embedded.Options{Topology: embedded.LoadBalanced, TLS: true}, FailPointsProxy, true, "", ""},
		{"one seed", set, FailPointsProxy, true, "mongodb://HOST/?replicaSet=rs0", ""},
		{"one server of a replica set", set, FailPointsProxy, true, "mongodb://HOST/?directConnection=true", ""},
		{"another name of it than in its hello", set, FailPointsProxy, true,
			"mongodb://LocalHost:PORT/?directConnection=true", ""},
		{"another name of a standalone", embedded.Options{}, FailPointsProxy, true, "mongodb://localhost:PORT/", ""},
		{"an SRV name of a replica set", set, FailPointsProxy, true, srv, "replicaSet=rs0"},
		{"an SRV name of a sharded cluster", embedded.Options{Topology: embedded.Sharded}, FailPointsProxy, true, srv, ""},
		{"an SRV name of load balancers", balanced, FailPointsProxy, true, srv, "loadBalanced=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := embedded.StartT(t, c.o)
			o := ClusterOptions{URI: servers.URI(), SingleURI: servers.SingleURI(), FailPointMode: c.mode}
			if c.uri != "" {
				host := servers.Hosts()[0]
				o.URI = strings.NewReplacer("HOST", host, "PORT", host[strings.Index(host, ":")+1:]).Replace(c.uri)
				o.SingleURI = o.URI
				resolves(t, HostsOf(servers.URI()), c.txt)
			}
			if c.o.TLS {
				file := filepath.Join(t.TempDir(), "ca.pem")
				testkit.Check(t, os.WriteFile(file, servers.CA(), 0o600))
				o.URIOptions = []URIOption{{"tlsCAFile", file}}
				o.URI, o.SingleURI = o.URI+"&tlsCAFile="+file, o.SingleURI+"&tlsCAFile="+file
			}
			source, err := OpenCluster(testkit.Context(t), o)
			testkit.Check(t, err)
			d, err := source.Acquire(testkit.Context(t), 0)
			testkit.Check(t, err)
			testkit.Equal(t, "the proxy has fail points", d.Description().FailPoints != nil, c.proxied)
			if !c.proxied {
				testkit.Equal(t, "the connection string", d.URI(), NormalURI(servers.URI()))
				testkit.Check(t, source.Close())
				return
			}
			direct, err := parsed(t, o.URI).resolved(t.Context())
			testkit.Check(t, err)
			for _, host := range slices.Concat(HostsOf(d.URI()), HostsOf(d.SingleURI()), d.Description().Hosts) {
				testkit.Equal(t, host+" is the server's",
					slices.Contains(slices.Concat(servers.Hosts(), HostsOf(servers.URI())), host), false)
			}
			for _, host := range d.Description().Servers {
				testkit.Equal(t, host+" is the server's", slices.Contains(HostsOf(direct.String()), host) ||
					slices.Contains(servers.Hosts(), host), true)
			}
			client, err := mongo.Connect(parsed(t, d.SingleURI()).client("a driver").SetRetryReads(false))
			testkit.Check(t, err)
			admin := client.Database("admin")
			set := testkit.D("configureFailPoint", "failCommand", "mode", "alwaysOn", "data",
				testkit.D("failCommands", bson.A{"ping"}, "errorCode", 8))
			testkit.Check(t, admin.RunCommand(t.Context(), set).Err())
			ping := admin.RunCommand(t.Context(), testkit.D("ping", 1)).Err()
			testkit.ErrorContains(t, ping, "'failCommand' failpoint")
			testkit.Check(t, client.Disconnect(t.Context()))
			if c.o.Topology != embedded.LoadBalanced { // by the address in the description, too
				_, err := parsed(t, d.DirectURI(d.Description().Hosts[0])).bare(d.Description().Hosts[0])(t.Context(), "admin",
					testkit.D("ping", 1))
				testkit.ErrorContains(t, err, "'failCommand' failpoint")
			}
			testkit.Check(t, source.Close())
			testkit.Check(t, direct.look(testkit.Context(t), lookTimeout, func(ctx context.Context, run runFunc) error {
				_, err := run.ask(ctx, "ping", 1)
				return err
			}))
			_, err = net.Dial("tcp", HostsOf(d.URI())[0])
			testkit.Equal(t, "the proxy is closed", err != nil, true)
		})
	}
}

// A user with a certificate is an error at once, because a driver would fail to authenticate.
func TestFrontedCertificate(t *testing.T) {
	u, err := parseURI("mongodb://h:1/?tls=true&authMechanism=MONGODB-X509")
	testkit.Check(t, err)
	testkit.ErrorContains(t, (&cluster{all: u, single: u}).front(t.Context()),
		"cannot be used with authMechanism=MONGODB-X509")
}

// Errors of an overloaded server with access control have its base backoff. A suite may change it.
func TestFrontedBackoff(t *testing.T) {
	for _, topology := range []embedded.Topology{embedded.Standalone, embedded.LoadBalanced} {
		servers := embedded.StartT(t, embedded.Options{Topology: topology, Version: "9.0", TLS: true,
			Users:      []embedded.User{{Name: "u", Password: "p"}},
			Parameters: bson.D{{Key: "externalClientBaseBackoffMS", Value: 20}}})
		file := filepath.Join(t.TempDir(), "ca.pem")
		testkit.Check(t, os.WriteFile(file, servers.CA(), 0o600))
		source, err := OpenCluster(testkit.Context(t),
			ClusterOptions{URI: servers.URI() + "&tlsCAFile=" + file, SingleURI: servers.SingleURI() + "&tlsCAFile=" + file,
				FailPointMode: FailPointsProxy})
		testkit.Check(t, err)
		d, err := source.Acquire(testkit.Context(t), 0)
		testkit.Check(t, err)
		client, err := mongo.Connect(parsed(t, d.SingleURI()).client("a driver"))
		testkit.Check(t, err)
		admin := client.Database("admin")
		overload := testkit.D("failCommands", bson.A{"ping"}, "errorCode", 462, "errorLabels",
			bson.A{"SystemOverloadedError"})
		testkit.Check(t, admin.RunCommand(t.Context(),
			testkit.D("configureFailPoint", "failCommand", "mode", "alwaysOn", "data", overload)).Err())
		for _, ms := range []int64{20, 30} {
			testkit.Check(t, admin.RunCommand(t.Context(),
				testkit.D("setParameter", 1, "externalClientBaseBackoffMS", ms)).Err())
			failed := new(mongo.CommandError)
			testkit.Equal(t, "a server error", errors.As(admin.RunCommand(t.Context(), testkit.D("ping", 1)).Err(), failed),
				true)
			got, _ := failed.Raw.Lookup("baseBackoffMS").AsInt64OK()
			testkit.Equal(t, "the base backoff", got, ms)
		}
		testkit.Check(t, client.Disconnect(t.Context()))
		testkit.Check(t, source.Close())
	}
}
