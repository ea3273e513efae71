package reference

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// on opens a client, with a database and a collection, on an embedded
// deployment. The names of its entities begin with the client's.
func (b *bench) on(uri, client string, uriOptions bson.D) {
	b.t.Helper()
	for _, e := range []struct {
		kind, id string
		options  bson.D
	}{
		{"client", client, bson.D{{Key: "uriOptions", Value: uriOptions}}},
		{"database", client + ".db", bson.D{{Key: "client", Value: client}, {Key: "databaseName", Value: "db"}}},
		{"database", client + ".admin", bson.D{{Key: "client", Value: client}, {Key: "databaseName", Value: "admin"}}},
		{"collection", client + ".coll", bson.D{{Key: "database", Value: client + ".db"}, {Key: "collectionName", Value: "coll"}}},
	} {
		if err := b.Open(context.Background(), engine.Entity{Kind: e.kind, ID: e.id, URI: uri,
			Options: raw(b.t, append(bson.D{{Key: "id", Value: e.id}}, e.options...))}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// storming starts a deployment and begins a test of an engine.
func storming(t *testing.T, o embedded.Options, engineOptions Options) (*embedded.Deployment, *bench) {
	t.Helper()
	d, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := New(engineOptions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	test, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := test.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d, &bench{Test: test, t: t}
}

// parameters sets server parameters through a client.
func (b *bench) parameters(client string, params ...bson.E) {
	b.t.Helper()
	b.must(client+".admin", "runCommand", bson.D{{Key: "commandName", Value: "setParameter"},
		{Key: "command", Value: append(bson.D{{Key: "setParameter", Value: 1}}, params...)}})
}

func (b *bench) count(client string, kind result.EventType) int {
	b.t.Helper()
	events, err := b.Events(context.Background(), client, 0, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// TestConnectionPoolBackpressure is the prose test "Connection Pool
// Backpressure" of Server Discovery and Monitoring, with and without TLS, with
// a fail point in place of a slow query. A pool whose connections are refused
// at the ingress limiter is not cleared, and the errors carry both labels.
func TestConnectionPoolBackpressure(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", tls), func(t *testing.T) {
			// Jitter 0: retries are not spread, which makes it the harder.
			d, b := storming(t, embedded.Options{Version: "8.2", TLS: tls}, Options{Random: func() float64 { return 0 }})
			options := bson.D{{Key: "maxConnecting", Value: 100}}
			if tls {
				options = append(options, bson.E{Key: "tls", Value: true}, bson.E{Key: "tlsInsecure", Value: true})
			}
			b.on(d.URI(), "client", options)
			b.on(d.URI(), "setup", options[1:])
			b.must("client.coll", "insertOne", bson.D{{Key: "document", Value: bson.D{}}})
			b.parameters("setup",
				bson.E{Key: "ingressConnectionEstablishmentRateLimiterEnabled", Value: true},
				bson.E{Key: "ingressConnectionEstablishmentRatePerSec", Value: 20},
				bson.E{Key: "ingressConnectionEstablishmentBurstCapacitySecs", Value: 1},
				bson.E{Key: "ingressConnectionEstablishmentMaxQueueDepth", Value: 1})
			b.must("setup", "$configureFailPoint", bson.D{{Key: "command", Value: bson.D{{Key: "configureFailPoint", Value: "failCommand"},
				{Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}},
					{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 1000}}}}}})
			outcomes := make([]result.Outcome, 100)
			var storm sync.WaitGroup
			for i := range outcomes {
				storm.Go(func() { outcomes[i] = b.do("client.coll", "findOne", bson.D{{Key: "filter", Value: bson.D{}}}) })
			}
			storm.Wait()
			refused := 0
			for _, out := range outcomes {
				if out.Err == nil {
					continue
				}
				refused++
				if !out.Err.HasLabel(labelOverloaded) || !out.Err.HasLabel("RetryableError") {
					t.Errorf("an error without the labels: %v %v", out.Err, out.Err.Labels)
				}
			}
			if n := b.count("client", result.ConnectionCheckOutFailed); n < 10 {
				t.Errorf("%d connections were refused", n)
			}
			if n := b.count("client", result.PoolCleared); n != 0 {
				t.Errorf("the pool was cleared %d times", n)
			}
			t.Logf("%d of %d operations failed", refused, len(outcomes))
			// The client works on, with the connections that it has.
			b.parameters("setup", bson.E{Key: "ingressConnectionEstablishmentRateLimiterEnabled", Value: false})
			b.must("client.coll", "findOne", bson.D{{Key: "filter", Value: bson.D{}}})
		})
	}
}

// TestStorm lets many clients storm a server that takes a few requests a
// second. Every operation ends; what fails has been told off by the limiter,
// after as many attempts as the policy allows, and no more; and when the storm
// is over, every client gets through.
func TestStorm(t *testing.T) {
	const clients, each, perSecond, burst = 16, 4, 20, 5
	d, b := storming(t, embedded.Options{Version: "9.0", Users: []embedded.User{{Name: "u", Password: "p"}}, Parameters: bson.D{
		{Key: "externalClientBaseBackoffMS", Value: 10}}}, Options{})
	uri := func(app string) string { return d.URI() + "&appName=" + app }
	if !strings.Contains(d.URI(), "?") {
		uri = func(app string) string { return d.URI() + "?appName=" + app }
	}
	b.on(uri("warden"), "warden", nil)
	b.must("warden.coll", "insertOne", bson.D{{Key: "document", Value: bson.D{}}})
	name := func(i int) string { return fmt.Sprintf("client%d", i) }
	var opening sync.WaitGroup
	for i := range clients {
		b.on(uri("stormer"), name(i), nil)
		opening.Go(func() { b.do(name(i)+".coll", "findOne", bson.D{{Key: "filter", Value: bson.D{}}}) }) // authenticate
	}
	opening.Wait()
	before := b.started(clients, name)
	b.parameters("warden",
		bson.E{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"warden"}}}},
		bson.E{Key: "ingressRequestAdmissionRatePerSec", Value: perSecond},
		bson.E{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: float64(burst) / perSecond},
		bson.E{Key: "ingressRequestRateLimiterEnabled", Value: true})
	asked, _ := b.limiter("warden")
	outcomes := make([]result.Outcome, clients*each)
	var storm sync.WaitGroup
	for i := range outcomes {
		storm.Go(func() {
			outcomes[i] = b.do(name(i%clients)+".coll", "insertOne", bson.D{{Key: "document", Value: bson.D{{Key: "i", Value: i}}}})
		})
	}
	storm.Wait()
	succeeded := 0
	for i, out := range outcomes {
		switch {
		case out.Err == nil:
			succeeded++
		case out.Err.Code != 462 || !out.Err.HasLabel(labelOverloaded) || !out.Err.HasLabel("RetryableError"):
			t.Errorf("operation %d: %v %v", i, out.Err, out.Err.Labels)
		}
	}
	attempts := b.started(clients, name) - before
	if failed := len(outcomes) - succeeded; attempts < len(outcomes)+2*failed || attempts > 3*len(outcomes) {
		t.Errorf("%d attempts of %d operations, of which %d failed", attempts, len(outcomes), failed)
	}
	t.Logf("%d of %d operations succeeded, with %d attempts", succeeded, len(outcomes), attempts)
	// What succeeded was written once, and what failed was not.
	if n := b.must("warden.coll", "countDocuments", bson.D{{Key: "filter", Value: bson.D{{Key: "i", Value: bson.D{{Key: "$exists", Value: true}}}}}}).AsInt64(); n != int64(succeeded) {
		t.Errorf("%d documents of %d inserts", n, succeeded)
	}
	seen, rejected := b.limiter("warden")
	if seen-asked != int64(attempts) {
		t.Errorf("the limiter saw %d requests, the clients sent %d", seen-asked, attempts)
	}
	if rejected == 0 {
		t.Error("it was no storm: nothing was rejected")
	}
	for i := range clients {
		through := false
		for deadline := time.Now().Add(20 * time.Second); !through && time.Now().Before(deadline); {
			through = b.do(name(i)+".coll", "insertOne", bson.D{{Key: "document", Value: bson.D{}}}).Err == nil
		}
		if !through {
			t.Errorf("client %d does not get through any more", i)
		}
		if n := b.count(name(i), result.PoolCleared); n != 0 {
			t.Errorf("client %d cleared its pool %d times", i, n)
		}
	}
}

// limiter tells how many requests the limiter has judged, and rejected.
func (b *bench) limiter(client string) (attempted, rejected int64) {
	b.t.Helper()
	status := b.must(client+".admin", "runCommand", bson.D{{Key: "commandName", Value: "serverStatus"},
		{Key: "command", Value: bson.D{{Key: "serverStatus", Value: 1}}}}).Document()
	limiter := status.Lookup("network", "ingressRequestRateLimiter").Document()
	return limiter.Lookup("attemptedAdmissions").AsInt64(), limiter.Lookup("rejectedAdmissions").AsInt64()
}

// started counts the commands that clients have begun.
func (b *bench) started(clients int, name func(int) string) int {
	n := 0
	for i := range clients {
		n += b.count(name(i), result.CommandStarted)
	}
	return n
}
