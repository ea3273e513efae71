package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take.
const patience = 10 * time.Second

func limit(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("%s took more than %v", t.Name(), patience))
	t.Cleanup(cancel)
	return ctx
}

func start(t testing.TB, o embedded.Options) *embedded.Deployment {
	t.Helper()
	d, err := embedded.Start(limit(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// connect is a client of the public driver.
func connect(t testing.TB, uri string, more ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri)
	for _, m := range more {
		m(o)
	}
	c, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Disconnect(limit(t)); err != nil {
			t.Error(err)
		}
	})
	return c
}

var topologies = []embedded.Topology{embedded.Standalone, embedded.ReplicaSet, embedded.Sharded, embedded.LoadBalanced}

// TestClient has the public driver use every topology in every version that
// has it and that the driver supports.
func TestClient(t *testing.T) {
	for _, topology := range topologies {
		for _, version := range embedded.Versions() {
			t.Run(topology.String()+" "+version, func(t *testing.T) {
				d, err := embedded.Start(limit(t), embedded.Options{Topology: topology, Version: version})
				if topology == embedded.LoadBalanced && slices.Index(embedded.Versions(), version) < 3 {
					if err == nil {
						t.Errorf("a load balanced %s", version)
						_ = d.Close()
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				}()
				if version == "4.2" {
					return // the driver asks for 4.4 at least
				}
				for _, uri := range []string{d.URI(), d.SingleURI()} {
					pingAndFail(t, uri)
				}
				if topology == embedded.LoadBalanced {
					return
				}
				for _, host := range d.Hosts() {
					pingAndFail(t, d.DirectURI(host))
				}
			})
		}
	}
}

// pingAndFail pings, and then has a ping fail as configured, once.
func pingAndFail(t *testing.T, uri string) {
	t.Helper()
	ctx := limit(t)
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetAppName("pings").SetMaxPoolSize(1).
		SetHeartbeatInterval(500 * time.Millisecond)) // the driver may wait out one when it is closed early
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Disconnect(ctx); err != nil {
			t.Error(err)
		}
	}()
	admin := c.Database("admin")
	// The fail point may be set on another mongos than the one that is pinged,
	// so that a client of many is told once of each attempt.
	configure := bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"ping"}},
			{Key: "errorCode", Value: 2},
			{Key: "errorLabels", Value: bson.A{"Mine"}},
			{Key: "appName", Value: "pings"},
		}},
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err(); err != nil {
		t.Fatalf("ping: %v", err)
	}
	if err := admin.RunCommand(ctx, configure).Err(); err != nil {
		t.Fatalf("configureFailPoint: %v", err)
	}
	for range 100 {
		err = admin.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
		if err != nil {
			break
		}
	}
	var failed mongo.CommandError
	if !errors.As(err, &failed) || failed.Code != 2 || !failed.HasErrorLabel("Mine") || failed.Name != "BadValue" {
		t.Fatalf("ping under a fail point: %v", err)
	}
}

// TestSecurity switches access control and TLS on.
func TestSecurity(t *testing.T) {
	for _, topology := range topologies {
		t.Run(topology.String(), func(t *testing.T) {
			d := start(t, embedded.Options{Topology: topology, TLS: true, Users: []embedded.User{{Name: "user", Password: "p:@/ss"}}})
			trusting := func(o *options.ClientOptions) { o.SetTLSConfig(d.ClientTLS()) }
			for _, mechanism := range []string{"", "SCRAM-SHA-1", "SCRAM-SHA-256"} {
				c := connect(t, d.URI(), trusting, func(o *options.ClientOptions) {
					o.Auth.AuthMechanism = mechanism
				})
				if err := c.Database("admin").RunCommand(limit(t), bson.D{{Key: "getParameter", Value: "*"}}).Err(); err != nil {
					t.Errorf("%s: %v", mechanism, err)
				}
			}
			wrong := connect(t, d.URI(), trusting, func(o *options.ClientOptions) { o.Auth.Password = "wrong" })
			err := wrong.Database("admin").RunCommand(limit(t), bson.D{{Key: "getParameter", Value: "*"}}).Err()
			if err == nil || !strings.Contains(err.Error(), "Authentication failed") {
				t.Errorf("with a wrong password: %v", err)
			}
		})
	}
}

// TestPlainOnTLS finds a client without TLS refused, and the deployment well.
func TestPlainOnTLS(t *testing.T) {
	d := start(t, embedded.Options{TLS: true})
	c := connect(t, strings.Replace(d.URI(), "tls=true", "serverSelectionTimeoutMS=200", 1))
	if err := c.Ping(limit(t), nil); err == nil {
		t.Error("a ping without TLS was answered")
	}
}

// TestStart measures how long start and close of a replica set take.
func TestStart(t *testing.T) {
	best := time.Hour
	for range 20 {
		began := time.Now()
		d, err := embedded.Start(limit(t), embedded.Options{Topology: embedded.ReplicaSet})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		best = min(best, took)
	}
	t.Logf("start of three members: %v", best)
	if best > 20*time.Millisecond {
		t.Errorf("start took %v, more than 20 ms", best)
	}
}

func BenchmarkStartReplicaSet(b *testing.B) {
	for b.Loop() {
		d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet})
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRefusedOptions tries options that no deployment can have.
func TestRefusedOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	for _, row := range []struct {
		options embedded.Options
		reason  string
	}{
		{embedded.Options{Version: "3.6"}, "no profile"},
		{embedded.Options{Topology: embedded.LoadBalanced, Version: "4.4"}, "load balancing came with 5.0"},
		{embedded.Options{Topology: embedded.ReplicaSet, Members: -1}, "a negative number"},
		{embedded.Options{Topology: embedded.Sharded, Mongoses: 51}, "more than a replica set may have"},
		{embedded.Options{Topology: 7}, "no such topology"},
		{embedded.Options{Ports: []int{port}}, "a port that is taken"},
		{embedded.Options{Topology: embedded.LoadBalanced, Ports: []int{0, 0, 0, port}}, "a balancer's port that is taken"},
	} {
		if d, err := embedded.Start(limit(t), row.options); err == nil {
			t.Errorf("%s: started", row.reason)
			_ = d.Close()
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := embedded.Start(ended, embedded.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// TestPorts starts on given ports.
func TestPorts(t *testing.T) {
	free := func() int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return l.Addr().(*net.TCPAddr).Port
	}
	ports := []int{free(), free(), free()}
	d := start(t, embedded.Options{Topology: embedded.ReplicaSet, Ports: ports})
	for i, host := range d.Hosts() {
		if want := fmt.Sprintf("127.0.0.1:%d", ports[i]); host != want {
			t.Errorf("member %d listens on %s, not %s", i, host, want)
		}
	}
}

// TestCloseTwice closes while clients are connected, and again.
func TestCloseTwice(t *testing.T) {
	d := start(t, embedded.Options{Topology: embedded.LoadBalanced})
	c := connect(t, d.URI())
	if err := c.Ping(limit(t), nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _ = d.Close() })
	}
	wg.Wait()
}

// primaries records who is primary, as the driver's monitors see it.
type primaries struct {
	mu   sync.Mutex
	seen []string
	more chan struct{}
}

func (p *primaries) changed(e *event.TopologyDescriptionChangedEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range e.NewDescription.Servers {
		if s.Kind == "RSPrimary" && (len(p.seen) == 0 || p.seen[len(p.seen)-1] != s.Addr.String()) {
			p.seen = append(p.seen, s.Addr.String())
			select {
			case p.more <- struct{}{}:
			default:
			}
		}
	}
}

func (p *primaries) await(t *testing.T, address string) {
	t.Helper()
	ctx := limit(t)
	for {
		p.mu.Lock()
		seen := slices.Clone(p.seen)
		p.mu.Unlock()
		if len(seen) > 0 && seen[len(seen)-1] == address {
			return
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			t.Fatalf("waited %v for the primary %s; seen: %v", patience, address, seen)
		}
	}
}

// TestPrimaryChanges has the driver hear of a step down, an election, a crash
// and a return, at once, for its monitors stream.
func TestPrimaryChanges(t *testing.T) {
	d := start(t, embedded.Options{Topology: embedded.ReplicaSet})
	p := &primaries{more: make(chan struct{}, 1)}
	c := connect(t, d.URI(), func(o *options.ClientOptions) {
		o.SetServerMonitor(&event.ServerMonitor{TopologyDescriptionChanged: p.changed})
		o.SetHeartbeatInterval(500 * time.Millisecond)
	})
	if err := c.Ping(limit(t), nil); err != nil {
		t.Fatal(err)
	}
	hosts := d.Hosts()
	p.await(t, hosts[0])
	for _, row := range []struct {
		name string
		do   func() error
		want string
	}{
		{"step down", d.StepDown, hosts[1]},
		{"election", func() error { return d.Elect(hosts[2]) }, hosts[2]},
		{"replSetStepDown", func() error {
			return c.Database("admin").RunCommand(limit(t), bson.D{{Key: "replSetStepDown", Value: 5}}).Err()
		}, hosts[0]},
		{"crash", func() error { return d.Kill(hosts[0]) }, hosts[1]},
		{"return", func() error { return errors.Join(d.Restart(hosts[0]), d.Elect(hosts[0])) }, hosts[0]},
	} {
		if err := row.do(); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if got := d.Primary(); got != row.want {
			t.Fatalf("%s: the primary is %s, not %s", row.name, got, row.want)
		}
		p.await(t, row.want)
	}
}

// TestData has the public driver write, read, aggregate and watch.
func TestData(t *testing.T) {
	for _, topology := range topologies {
		t.Run(topology.String(), func(t *testing.T) {
			d := start(t, embedded.Options{Topology: topology})
			c := connect(t, d.URI(), func(o *options.ClientOptions) { o.SetHeartbeatInterval(500 * time.Millisecond) })
			ctx := limit(t)
			things := c.Database("db").Collection("things")
			var stream *mongo.ChangeStream
			if topology != embedded.Standalone {
				var err error
				if stream, err = things.Watch(ctx, mongo.Pipeline{}); err != nil {
					t.Fatalf("watch: %v", err)
				}
				defer func() { _ = stream.Close(ctx) }()
			}
			docs := make([]any, 250)
			for i := range docs {
				docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "even", Value: i%2 == 0}}
			}
			if _, err := things.InsertMany(ctx, docs); err != nil {
				t.Fatalf("insertMany: %v", err)
			}
			cursor, err := things.Find(ctx, bson.D{{Key: "even", Value: true}}, options.Find().SetBatchSize(10))
			if err != nil {
				t.Fatalf("find: %v", err)
			}
			var found []bson.D
			if err := cursor.All(ctx, &found); err != nil || len(found) != 125 {
				t.Errorf("find: %d documents, %v", len(found), err)
			}
			cursor, err = things.Aggregate(ctx, mongo.Pipeline{bson.D{{Key: "$group", Value: bson.D{
				{Key: "_id", Value: "$even"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}}})
			if err != nil {
				t.Fatalf("aggregate: %v", err)
			}
			var groups []bson.D
			if err := cursor.All(ctx, &groups); err != nil || len(groups) != 2 {
				t.Errorf("aggregate: %v, %v", groups, err)
			}
			if stream == nil {
				return
			}
			if !stream.Next(ctx) {
				t.Fatalf("the change stream: %v", stream.Err())
			}
			if kind, _ := stream.Current.Lookup("operationType").StringValueOK(); kind != "insert" {
				t.Errorf("the change stream tells %v", stream.Current)
			}
		})
	}
}

// TestKillMongos kills a mongos and the standalone, and brings them back.
func TestKillMongos(t *testing.T) {
	for _, topology := range []embedded.Topology{embedded.Sharded, embedded.Standalone} {
		d := start(t, embedded.Options{Topology: topology})
		host := d.Hosts()[0]
		ping := func() error {
			c := connect(t, d.DirectURI(host)+"&serverSelectionTimeoutMS=300&heartbeatFrequencyMS=500")
			return c.Ping(limit(t), nil)
		}
		if err := ping(); err != nil {
			t.Fatalf("%v: %v", topology, err)
		}
		if err := d.Kill(host); err != nil {
			t.Fatal(err)
		}
		if err := ping(); err == nil {
			t.Errorf("%v: a killed server answered", topology)
		}
		if err := d.Restart(host); err != nil {
			t.Fatal(err)
		}
		if err := ping(); err != nil {
			t.Errorf("%v: after a restart: %v", topology, err)
		}
		if err := d.Restart(host); err == nil {
			t.Errorf("%v: what runs was restarted", topology)
		}
		if err := d.Kill("127.0.0.1:1"); err == nil {
			t.Errorf("%v: a server that is not there was killed", topology)
		}
	}
}
