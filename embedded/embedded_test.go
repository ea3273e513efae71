package embedded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB, o embedded.Options) *embedded.Deployment {
	t.Helper()
	d, err := embedded.Start(testkit.Context(t), o)
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	return d
}

// connect makes a client of the public driver, with short heartbeats: the
// driver may wait for one when it is closed early.
func connect(t testing.TB, uri string, more ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetHeartbeatInterval(500 * time.Millisecond)
	for _, m := range more {
		m(o)
	}
	c, err := mongo.Connect(o)
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, c.Disconnect(context.Background())) })
	return c
}

var topologies = []embedded.Topology{embedded.Standalone, embedded.ReplicaSet, embedded.Sharded, embedded.LoadBalanced}

// TestClient has the public driver use every topology in every version that
// has it and that the driver supports.
func TestClient(t *testing.T) {
	for _, topology := range topologies {
		for i, version := range embedded.Versions() {
			if version == "4.2" || topology == embedded.LoadBalanced && i < slices.Index(embedded.Versions(), "5.0") {
				continue // the driver requires 4.4, and load balancing 5.0
			}
			t.Run(topology.String()+" "+version, func(t *testing.T) {
				t.Parallel() // it waits for heartbeats
				d := start(t, embedded.Options{Topology: topology, Version: version})
				uris := []string{d.URI(), d.SingleURI()}
				for _, host := range d.Hosts() {
					if topology != embedded.LoadBalanced {
						uris = append(uris, d.DirectURI(host))
					}
				}
				for _, uri := range uris {
					pingAndFail(t, uri)
				}
			})
		}
	}
}

// pingAndFail pings, and then has a ping fail as configured, once.
func pingAndFail(t *testing.T, uri string) {
	t.Helper()
	ctx := testkit.Context(t)
	admin := connect(t, uri, func(o *options.ClientOptions) { o.SetAppName("pings").SetMaxPoolSize(1) }).Database("admin")
	testkit.Check(t, admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err())
	testkit.Check(t, admin.RunCommand(ctx, testkit.Extended[bson.D](t, `{"configureFailPoint": "failCommand", "mode": {"times": 1},
		"data": {"failCommands": ["ping"], "errorCode": 2, "errorLabels": ["Mine"], "appName": "pings"}}`)).Err())
	// The fail point may be set on another mongos than the one that gets the
	// next ping.
	var failed mongo.CommandError
	testkit.Until(t, "a ping that fails", func() bool {
		return errors.As(admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err(), &failed)
	})
	if failed.Code != 2 || !failed.HasErrorLabel("Mine") || failed.Name != "BadValue" {
		t.Fatalf("ping under a fail point: %v", failed)
	}
}

// TestSecurity switches access control and TLS on. A command without TLS gets no
// answer.
func TestSecurity(t *testing.T) {
	for _, topology := range topologies {
		t.Run(topology.String(), func(t *testing.T) {
			d := start(t, embedded.Options{Topology: topology, TLS: true, Users: []embedded.User{{Name: "user", Password: "p:@/ss"}}})
			plain, err := net.Dial("tcp", d.Hosts()[0])
			testkit.Check(t, err)
			defer func() { _ = plain.Close() }()
			_, err = plain.Write(wire.AppendMsg(nil, 1, 0, 0, testkit.Extended[bson.Raw](t, `{"ping": 1, "$db": "admin"}`)))
			testkit.Check(t, err)
			testkit.Check(t, plain.SetReadDeadline(time.Now().Add(testkit.Patience)))
			answer, err := io.ReadAll(plain)
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() || len(answer) >= 16 || !strings.Contains(d.URI(), "tls=true") {
				t.Errorf("%s: without TLS, got %x, %v", d.URI(), answer, err)
			}
			for _, row := range []struct{ reason, mechanism, password, want string }{
				{"the mechanism of the driver's choice", "", "p:@/ss", ""},
				{"SCRAM-SHA-1", "SCRAM-SHA-1", "p:@/ss", ""},
				{"SCRAM-SHA-256", "SCRAM-SHA-256", "p:@/ss", ""},
				{"a wrong password", "", "wrong", "Authentication failed"},
			} {
				c := connect(t, d.URI(), func(o *options.ClientOptions) {
					o.SetTLSConfig(d.ClientTLS())
					o.Auth.AuthMechanism, o.Auth.Password = row.mechanism, row.password
				})
				err := c.Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "getParameter", Value: "*"}}).Err()
				testkit.Ends(t, row.reason, err, row.want)
			}
		})
	}
}

// TestRefusedOptions tries options that no deployment can have.
func TestRefusedOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	for _, row := range []struct {
		reason  string
		options embedded.Options
		starts  bool
	}{
		{"an unknown version", embedded.Options{Version: "3.6"}, false},
		{"load balancing came with 5.0", embedded.Options{Topology: embedded.LoadBalanced, Version: "4.4"}, false},
		{"a negative number of members", embedded.Options{Topology: embedded.ReplicaSet, Members: -1}, false},
		{"one mongos more than there can be", embedded.Options{Topology: embedded.Sharded, Mongoses: 51}, false},
		{"as many mongoses as there can be", embedded.Options{Topology: embedded.Sharded, Mongoses: 50}, true},
		{"an unknown topology", embedded.Options{Topology: embedded.LoadBalanced + 1}, false},
		{"a port that is taken", embedded.Options{Ports: []int{port}}, false},
		{"the port of the last member is taken", embedded.Options{Topology: embedded.ReplicaSet, Ports: []int{0, 0, port}}, false},
		{"a port more than there are members", embedded.Options{Topology: embedded.ReplicaSet, Ports: []int{0, 0, 0, port}}, true},
		{"a balancer's port that is taken", embedded.Options{Topology: embedded.LoadBalanced, Ports: []int{0, 0, 0, port}}, false},
	} {
		d, err := embedded.Start(testkit.Context(t), row.options)
		if (err == nil) != row.starts {
			t.Errorf("%s: %v", row.reason, err)
		}
		if err == nil {
			_ = d.Close()
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := embedded.Start(ended, embedded.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// TestCloseTwice closes while clients are connected, several times at once and again.
func TestCloseTwice(t *testing.T) {
	d := start(t, embedded.Options{Topology: embedded.LoadBalanced})
	testkit.Check(t, connect(t, d.URI()).Ping(testkit.Context(t), nil))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestPrimaryChanges has the monitors of the driver, which stream, hear of a
// step down, elections, a crash and a return.
func TestPrimaryChanges(t *testing.T) {
	d := start(t, embedded.Options{Topology: embedded.ReplicaSet})
	var seen atomic.Value
	c := connect(t, d.URI(), func(o *options.ClientOptions) {
		o.SetServerMonitor(&event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			for _, s := range e.NewDescription.Servers {
				if s.Kind == "RSPrimary" {
					seen.Store(s.Addr.String())
				}
			}
		}})
	})
	hosts := d.Hosts()
	dial := func(host string) error {
		c, err := net.Dial("tcp", host)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for _, row := range []struct {
		reason string
		do     func() error
		want   string // the primary, "" if it is refused
	}{
		{"the first member at first", func() error { return c.Ping(testkit.Context(t), nil) }, hosts[0]},
		{"step down", d.StepDown, hosts[1]},
		{"replSetStepDown", func() error {
			return c.Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "replSetStepDown", Value: 5}}).Err()
		}, hosts[2]},
		{"crash", func() error { return d.Kill(hosts[2]) }, hosts[0]},
		{"nobody listens", func() error { return dial(hosts[2]) }, ""},
		{"return", func() error { return d.Restart(hosts[2]) }, hosts[0]},
		{"what runs cannot be restarted", func() error { return d.Restart(hosts[2]) }, ""},
		{"a server that does not exist cannot be killed", func() error { return d.Kill("127.0.0.1:1") }, ""},
		{"nor restarted", func() error { return d.Restart("127.0.0.1:1") }, ""},
	} {
		if err := row.do(); (err != nil) != (row.want == "") {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if row.want == "" {
			continue
		}
		if got := d.Primary(); got != row.want {
			t.Fatalf("%s: the primary is %s, not %s", row.reason, got, row.want)
		}
		testkit.Until(t, row.reason+" seen by the driver", func() bool { return seen.Load() == row.want })
	}
}
