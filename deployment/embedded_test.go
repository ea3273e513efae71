package deployment

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ping(t *testing.T, uri string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(5 * time.Second).
		SetServerMonitoringMode(options.ServerMonitoringModePoll))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	return client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
}

// Each offer can be had, serves a real client through all its connection
// strings, and a probe of it finds what the offer promised.
func TestEmbeddedKeepsItsOffers(t *testing.T) {
	ctx := context.Background()
	for _, row := range []struct {
		reason  string
		options EmbeddedOptions
		offers  []string
	}{
		{"everything", EmbeddedOptions{Version: "8.0"}, []string{
			"replicaset 8.0", "replicaset 8.0 auth", "sharded 8.0", "sharded 8.0 auth",
			"load-balanced 8.0", "load-balanced 8.0 auth", "single 8.0", "single 8.0 auth"}},
		{"load balancing came with 5.0", EmbeddedOptions{Version: "4.2"}, []string{
			"replicaset 4.2", "replicaset 4.2 auth", "sharded 4.2", "sharded 4.2 auth", "single 4.2", "single 4.2 auth"}},
		{"one topology with TLS", EmbeddedOptions{Topologies: []Topology{Sharded}, Version: "7.0", TLS: true, Auth: new(bool)}, []string{"sharded 7.0"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s, err := OpenEmbedded(ctx, row.options)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			var names []string
			for _, o := range s.Offers() {
				names = append(names, o.Name)
			}
			if got, want := strings.Join(names, ", "), strings.Join(row.offers, ", "); got != want {
				t.Fatalf("offers are %s, want %s", got, want)
			}
			for i, offer := range s.Offers() {
				d, err := s.Acquire(ctx, i)
				if err != nil {
					t.Fatal(err)
				}
				for _, uri := range []string{d.URI(), d.SingleURI()} {
					if err := ping(t, uri); err != nil {
						t.Errorf("%s: %v", offer.Name, err)
					}
				}
				if offer.Topology != LoadBalanced {
					for _, h := range d.Description().Hosts {
						if err := ping(t, d.DirectURI(h)); err != nil {
							t.Errorf("%s: %s alone: %v", offer.Name, h, err)
						}
					}
				}
				found, err := probe(ctx, d.URI())
				if err != nil {
					t.Fatal(err)
				}
				if found.Topology != offer.Topology || found.Version != offer.Version || found.ReplicaSetShards != offer.ReplicaSetShards {
					t.Errorf("%s: a probe finds %s, version %v, replica set shards %t", offer.Name, found.Topology, found.Version, found.ReplicaSetShards)
				}
				s.Release(d, false)
				if again, err := s.Acquire(ctx, i); err != nil || again != d {
					t.Errorf("%s: an idle deployment is not lent again (%v)", offer.Name, err)
				} else {
					s.Release(again, true)
				}
				if again, err := s.Acquire(ctx, i); err != nil || again == d {
					t.Errorf("%s: a broken deployment is lent again (%v)", offer.Name, err)
				}
			}
		})
	}
}

func TestEmbeddedRefusals(t *testing.T) {
	for reason, o := range map[string]EmbeddedOptions{
		"no load balancer before 5.0": {Version: "4.4", Topologies: []Topology{LoadBalanced}},
		"a version that is not known": {Version: "3.0"},
		"not a topology to start":     {Topologies: []Topology{ShardedReplicaSet}},
	} {
		if s, err := OpenEmbedded(context.Background(), o); err == nil {
			t.Errorf("%s: accepted", reason)
			_ = s.Close()
		}
	}
}

func TestClusterIsLentToOneAtATime(t *testing.T) {
	ctx := context.Background()
	auth := true
	running, err := OpenEmbedded(ctx, EmbeddedOptions{Topologies: []Topology{Sharded}, Auth: &auth})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Close() }()
	d, err := running.Acquire(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenCluster(ctx, ClusterOptions{URI: d.URI()})
	if err != nil {
		t.Fatal(err)
	}
	about := s.Offers()[0]
	if about.Topology != Sharded || !about.Auth || !about.ReplicaSetShards {
		t.Errorf("the cluster is seen as %+v", about)
	}
	c, err := s.Acquire(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c.Owned() {
		t.Error("a cluster that was there before us is taken for our own")
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := s.Acquire(short, 0); err == nil {
		t.Error("the cluster was lent twice at once")
	}
	s.Release(c, false)
	if _, err := s.Acquire(ctx, 0); err != nil {
		t.Errorf("a free cluster is not lent: %v", err)
	}
}

func TestClusterErrorsKeepSecrets(t *testing.T) {
	auth := true
	running, err := OpenEmbedded(context.Background(), EmbeddedOptions{Topologies: []Topology{Single}, Auth: &auth})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Close() }()
	d, err := running.Acquire(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	host := d.Description().Hosts[0]
	for reason, o := range map[string]ClusterOptions{
		"nobody listens":       {URI: "mongodb://user:hunter22@127.0.0.1:1/", Timeout: 200 * time.Millisecond},
		"wrong password":       {URI: "mongodb://utr:hunter22@" + host + "/", Timeout: 5 * time.Second},
		"not a proper string":  {URI: "mongodb://user:hunter22@/"},
		"an option is no good": {URI: "mongodb://user:hunter22@" + host + "/?w=-3"},
	} {
		s, err := OpenCluster(context.Background(), o)
		if err == nil {
			t.Errorf("%s: accepted", reason)
			_ = s.Close()
		} else if strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: the error tells the password: %v", reason, err)
		}
	}
}

// A look at a deployment never waits for a heartbeat when it is over: one in
// twenty did, while the driver streamed hello.
func TestLooksDoNotWait(t *testing.T) {
	s, err := OpenEmbedded(context.Background(), EmbeddedOptions{Topologies: []Topology{Single}, Auth: new(bool)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d, err := s.Acquire(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(d, false)
	began := time.Now()
	for range 100 {
		if _, err := probe(context.Background(), d.URI()); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > 9*time.Second { // a heartbeat is 10 s
			t.Fatal("a look waited for a heartbeat")
		}
	}
}
