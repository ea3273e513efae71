package embedded_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t testing.TB, o embedded.Options) *embedded.Deployment {
	t.Helper()
	d, err := embedded.Start(testkit.Context(t), o)
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, d.Close()) })
	return d
}

// connect creates a client with short heartbeats, because Disconnect may wait for a heartbeat.
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

// The Go driver connects to every topology in every version that both support.
func TestClient(t *testing.T) {
	for _, topology := range topologies {
		for i, version := range embedded.Versions() {
			if version == "4.2" || topology == embedded.LoadBalanced && i < slices.Index(embedded.Versions(), "5.0") {
				continue // the driver requires 4.4, load balancing requires 5.0
			}
			t.Run(string(topology)+" "+version, func(t *testing.T) {
				t.Parallel() // waits for heartbeats
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

// A server is known by the name of the host on which it listens.
func TestHostName(t *testing.T) {
	d := start(t, embedded.Options{Host: "localhost"})
	for _, host := range d.Hosts() {
		if !strings.HasPrefix(host, "localhost:") {
			t.Errorf("a server on localhost is known as %s", host)
		}
	}
	pingAndFail(t, d.URI())
}

// pingAndFail expects that a ping succeeds, and that one fails after a fail point was configured.
func pingAndFail(t *testing.T, uri string) {
	t.Helper()
	ctx := testkit.Context(t)
	admin := connect(t, uri, func(o *options.ClientOptions) { o.SetAppName("pings").SetMaxPoolSize(1) }).Database("admin")
	testkit.Check(t, admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err())
	testkit.Check(t, admin.RunCommand(ctx,
		testkit.Extended[bson.D](t, `{"configureFailPoint": "failCommand", "mode": {"times": 1},
		"data": {"failCommands": ["ping"], "errorCode": 2, "errorLabels": ["Mine"], "appName": "pings"}}`)).Err())
	// The next ping may go to a mongos without the fail point.
	var failed mongo.CommandError
	testkit.Until(t, "a ping fails", func() bool {
		return errors.As(admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err(), &failed)
	})
	if failed.Code != 2 || !failed.HasErrorLabel("Mine") || failed.Name != "BadValue" {
		t.Fatalf("ping under a fail point: %v", failed)
	}
}

// Access control and TLS: clients authenticate, and a command without TLS gets no reply.
func TestSecurity(t *testing.T) {
	for _, topology := range topologies {
		t.Run(string(topology), func(t *testing.T) {
			d := start(t, embedded.Options{Topology: topology, TLS: true,
				Users: []embedded.User{{Name: "a,b=c=2C@d", Password: "p:@/ss"}}})
			plain, err := net.Dial("tcp", d.Hosts()[0])
			testkit.Check(t, err)
			defer func() { _ = plain.Close() }()
			_, err = plain.Write(wire.AppendMsg(nil, 1, 0, 0, testkit.Extended[bson.Raw](t, `{"ping": 1, "$db": "admin"}`)))
			testkit.Check(t, err)
			testkit.Check(t, plain.SetReadDeadline(time.Now().Add(testkit.Patience)))
			answer, err := io.ReadAll(plain)
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() || len(answer) >= 16 ||
				!strings.Contains(d.URI(), "tls=true") {
				t.Errorf("%s: without TLS, got %x, %v", d.URI(), answer, err)
			}
			for _, row := range []struct{ reason, mechanism, password, want string }{
				{"default mechanism", "", "p:@/ss", ""},
				{"SCRAM-SHA-1", "SCRAM-SHA-1", "p:@/ss", ""},
				{"SCRAM-SHA-256", "SCRAM-SHA-256", "p:@/ss", ""},
				{"wrong password", "", "wrong", "Authentication failed"},
			} {
				c := connect(t, d.URI(), func(o *options.ClientOptions) {
					o.SetTLSConfig(d.ClientTLS())
					o.Auth.AuthMechanism, o.Auth.Password = row.mechanism, row.password
				})
				err := c.Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "getParameter", Value: "*"}}).Err()
				testkit.WantError(t, row.reason, err, row.want)
			}
		})
	}
}

// A user without a role for a command gets error 13, as on a server. Fail points and a user's own sessions require
// none.
func TestRoles(t *testing.T) {
	d := start(t, embedded.Options{Users: []embedded.User{{Name: "root", Password: "pw"}}})
	commands := []string{`{"find": "c"}`, `{"insert": "c", "documents": [{}]}`, `{"drop": "c"}`,
		`{"getParameter": 1, "enableTestCommands": 1, "$db": "admin"}`,
		`{"configureFailPoint": "failCommand", "mode": "off", "$db": "admin"}`, `{"endSessions": []}`,
		`{"listDatabases": 1, "authorizedDatabases": false, "$db": "admin"}`}
	testkit.Check(t, connect(t, d.URI()).Database("admin").RunCommand(testkit.Context(t),
		testkit.Extended[bson.D](t, `{"createRole": "adds", "roles": ["clusterMonitor"],
		"privileges": [{"resource": {"db": "db", "collection": "c"}, "actions": ["insert"]}, {"resource": {"db": "", "collection": "d"}, "actions": ["find"]}]}`)).Err())
	for i, row := range []struct{ roles, may string }{
		{`["adds"]`, "insert getParameter configureFailPoint endSessions listDatabases"},
		{`["root"]`, "find insert drop getParameter configureFailPoint endSessions listDatabases"},
		{`[]`, "configureFailPoint endSessions"},
		{`["read"]`, "configureFailPoint endSessions"}, // of admin
		{`[{"role": "read", "db": "db"}]`, "find configureFailPoint endSessions"},
		{`[{"role": "readWrite", "db": "db"}]`, "find insert drop configureFailPoint endSessions"},
		{`[{"role": "readWrite", "db": "other"}, "readAnyDatabase"]`, "find configureFailPoint endSessions listDatabases"},
		{`["readWriteAnyDatabase"]`, "find insert drop configureFailPoint endSessions listDatabases"},
		{`["clusterMonitor"]`, "getParameter configureFailPoint endSessions listDatabases"},
		{`["read", "clusterAdmin"]`, "find insert drop getParameter configureFailPoint endSessions listDatabases"},
	} {
		name := fmt.Sprint("user", i)
		run := func(c *mongo.Client, text string) error {
			var command bson.D
			testkit.Check(t, bson.UnmarshalExtJSON([]byte(text), false, &command))
			database := "db"
			if last := command[len(command)-1]; last.Key == "$db" {
				database, command = "admin", command[:len(command)-1]
			}
			return c.Database(database).RunCommand(testkit.Context(t), command).Err()
		}
		testkit.Check(t, run(connect(t, d.URI()),
			fmt.Sprintf(`{"createUser": %q, "pwd": "pw", "roles": %s, "$db": "admin"}`, name, row.roles)))
		c := connect(t, strings.Replace(d.URI(), "root:", name+":", 1))
		for _, text := range commands {
			name, _, _ := strings.Cut(text[2:], `"`)
			var refused mongo.CommandError
			err := run(c, text)
			if may := strings.Contains(row.may, name); may != (err == nil) || !may &&
				(!errors.As(err, &refused) || refused.Code != 13) {
				t.Errorf("%s: %s: %v", row.roles, text, err)
			}
		}
		databases, err := c.ListDatabaseNames(testkit.Context(t), bson.D{{Key: "name", Value: "admin"}})
		testkit.Check(t, err)
		testkit.Equal(t, row.roles+": databases", len(databases) == 1, strings.Contains(row.may, "listDatabases") ||
			row.roles == `["read"]`)
	}
}

func TestInvalidOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	for _, row := range []struct {
		reason  string
		options embedded.Options
		starts  bool
	}{
		{"unknown version", embedded.Options{Version: "3.6"}, false},
		{"load balancing before 5.0", embedded.Options{Topology: embedded.LoadBalanced, Version: "4.4"}, false},
		{"negative number of members", embedded.Options{Topology: embedded.ReplicaSet, Members: -1}, false},
		{"too many mongoses", embedded.Options{Topology: embedded.Sharded, Mongoses: 51}, false},
		{"maximum number of mongoses", embedded.Options{Topology: embedded.Sharded, Mongoses: 50}, true},
		{"unknown topology", embedded.Options{Topology: "ring"}, false},
		{"port in use", embedded.Options{Ports: []int{port}}, false},
		{"port of the last member in use", embedded.Options{Topology: embedded.ReplicaSet, Ports: []int{0, 0, port}}, false},
		{"unused port in the list", embedded.Options{Topology: embedded.ReplicaSet, Ports: []int{0, 0, 0, port}}, true},
		{"port of a load balancer in use", embedded.Options{Topology: embedded.LoadBalanced, Ports: []int{0, 0, 0, port}},
			false},
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
		t.Errorf("canceled context: %v", err)
	}
}

// Close is called concurrently and repeatedly while a client is connected.
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

// The driver's streaming monitors notice a stepdown, elections, a crash and a restart.
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
		want   string // the primary, "" for an error
	}{
		{"initially the first member", func() error { return c.Ping(testkit.Context(t), nil) }, hosts[0]},
		{"StepDown", d.StepDown, hosts[1]},
		{"replSetStepDown", func() error {
			return c.Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "replSetStepDown", Value: 10}}).Err()
		}, hosts[2]},
		{"kill the primary", func() error { return d.Kill(hosts[2]) }, hosts[0]},
		{"dial a killed server", func() error { return dial(hosts[2]) }, ""},
		{"restart", func() error { return d.Restart(hosts[2]) }, hosts[0]},
		{"restart a running server", func() error { return d.Restart(hosts[2]) }, ""},
		{"kill an unknown server", func() error { return d.Kill("127.0.0.1:1") }, ""},
		{"restart an unknown server", func() error { return d.Restart("127.0.0.1:1") }, ""},
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
