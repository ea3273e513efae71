// Package reference runs the reference engine for a long time against servers that fail
// over or shed load.
package reference

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a test of the engine on an embedded deployment.
type site struct {
	engine.Test
	t *testing.T
	d *embedded.Deployment
}

func visit(t *testing.T, o embedded.Options) *site {
	t.Helper()
	d, err := embedded.Start(t.Context(), o)
	testkit.Check(t, err)
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	test, err := e.Begin(t.Context())
	testkit.Check(t, err)
	t.Cleanup(func() {
		testkit.Check(t, test.End(testkit.Context(t)))
		_, _ = e.Close(), d.Close()
	})
	return &site{test, t, d}
}

// client opens a client and, with its name as a prefix, the databases admin and db and
// a collection.
func (s *site) client(name, options string) {
	s.t.Helper()
	for _, e := range [][3]string{
		{"client", name, fmt.Sprintf(`{"id":%q,"uriOptions":%s}`, name, options)},
		{"database", name + ".admin", fmt.Sprintf(`{"id":"%s.admin","client":%[1]q,"databaseName":"admin"}`, name)},
		{"database", name + ".db", fmt.Sprintf(`{"id":"%s.db","client":%[1]q,"databaseName":"db"}`, name)},
		{"collection", name + ".coll", fmt.Sprintf(`{"id":"%s.coll","database":"%[1]s.db","collectionName":"coll"}`, name)},
	} {
		testkit.Check(s.t, s.Open(s.t.Context(),
			engine.Entity{Kind: e[0], ID: e[1], URI: s.d.URI(), Options: s.parsed(e[2])}))
	}
}

func (s *site) parsed(json string) (out bson.Raw) {
	if err := bson.UnmarshalExtJSON([]byte(json), false, &out); err != nil {
		s.t.Errorf("%s: %v", json, err)
	}
	return out
}

// do may be called concurrently.
func (s *site) do(object, name, args string) result.Outcome {
	return s.Do(s.t.Context(), engine.Operation{Object: object, Name: name, Arguments: s.parsed(args)})
}

// must returns the result of an operation that must succeed.
func (s *site) must(object, name, args string) bson.RawValue {
	s.t.Helper()
	out := s.do(object, name, args)
	if out.Err != nil {
		s.t.Fatal(out.Err)
	}
	return out.Value.RawValue
}

// count counts the events of a client.
func (s *site) count(client string, kind result.EventType) (n int) {
	events, err := s.Events(s.t.Context(), client, 0, 0)
	testkit.Check(s.t, err)
	for _, e := range events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// TestReadsThroughFailovers reads continuously while primaries step down and members
// crash and restart. Every read succeeds, because at most one failure falls into a read,
// and the read is retried once.
func TestReadsThroughFailovers(t *testing.T) {
	for _, c := range []struct {
		reason   string
		topology embedded.Topology
		victim   func(d *embedded.Deployment, n int) string // "": the primary steps down
	}{
		{"the primary steps down: the second attempt waits for the new primary", embedded.ReplicaSet,
			func(*embedded.Deployment, int) string { return "" }},
		{"the primary crashes and restarts as a secondary", embedded.ReplicaSet,
			func(d *embedded.Deployment, _ int) string { return d.Primary() }},
		{"one of two mongoses crashes", embedded.Sharded,
			func(d *embedded.Deployment, n int) string { return d.Hosts()[n%2] }},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := visit(t, embedded.Options{Topology: c.topology})
			s.client("reader", `{}`)
			s.must("reader.coll", "insertMany", `{"documents":[{"_id":1},{"_id":2}]}`)
			var stopped atomic.Bool
			var ended [4]atomic.Int64
			var workers sync.WaitGroup
			defer workers.Wait()
			defer stopped.Store(true)
			for i := range ended {
				workers.Go(func() {
					for !stopped.Load() {
						out := s.do("reader.coll", "find", `{"filter":{}}`)
						if a, ok := out.Value.ArrayOK(); out.Err != nil || !ok || a.Validate() != nil || a.Index(1).Validate() != nil {
							t.Errorf("read %v, %v after %+v", out.Value, out.Err, out.Decisions)
							stopped.Store(true)
						}
						ended[i].Add(1)
					}
				})
			}
			// progress waits until each worker has performed reads.
			progress := func() {
				for i := range ended {
					until := ended[i].Load() + 25
					testkit.Until(t, "25 reads of a worker", func() bool { return ended[i].Load() >= until || stopped.Load() })
				}
			}
			for n := range 30 {
				at, err := c.victim(s.d, n), error(nil)
				if at == "" {
					err = s.d.StepDown()
				} else if err = s.d.Kill(at); err == nil {
					progress()
					err = s.d.Restart(at)
				}
				testkit.Check(t, err)
				progress()
			}
		})
	}
}

// TestStorm overloads a server that accepts a few requests per second. Every operation
// ends. Operations fail only because of the rate limiter, after exactly the number of
// attempts that the policy allows. After the overload every client succeeds again.
func TestStorm(t *testing.T) {
	const clients, each = 16, 4
	s := visit(t, embedded.Options{Version: "9.0", Users: []embedded.User{{Name: "u", Password: "p"}},
		Parameters: bson.D{{Key: "externalClientBaseBackoffMS", Value: 10}}})
	s.client("warden", `{"appname":"warden"}`)
	name := func(i int) string { return fmt.Sprintf("client%d", i) }
	for i := range clients {
		s.client(name(i), `{}`)
		s.must(name(i)+".coll", "findOne", `{"filter":{}}`)
	}
	started := func() (n int) {
		for i := range clients {
			n += s.count(name(i), result.CommandStarted)
		}
		return n
	}
	limiter := func() (attempted, rejected int64) {
		l := s.must("warden.admin", "runCommand",
			`{"commandName":"serverStatus","command":{"serverStatus":1}}`).Document().Lookup("network",
			"ingressRequestRateLimiter").Document()
		return l.Lookup("attemptedAdmissions").AsInt64(), l.Lookup("rejectedAdmissions").AsInt64()
	}
	before := started()
	s.must("warden.admin", "runCommand", `{"commandName":"setParameter","command":{"setParameter":1,
		"ingressRequestRateLimiterApplicationExemptions":{"appNames":["warden"]}, "ingressRequestAdmissionRatePerSec":20,
		"ingressRequestAdmissionBurstCapacitySecs":0.25, "ingressRequestRateLimiterEnabled":true}}`)
	base, _ := limiter()
	outcomes := make([]result.Outcome, clients*each)
	var storm sync.WaitGroup
	for i := range outcomes {
		storm.Go(func() {
			outcomes[i] = s.do(name(i%clients)+".coll", "insertOne", fmt.Sprintf(`{"document":{"i":%d}}`, i))
		})
	}
	storm.Wait()
	succeeded := 0
	for i, out := range outcomes {
		if out.Err == nil {
			succeeded++
		} else if out.Err.Code != 462 || !out.Err.HasLabel("SystemOverloadedError") || !out.Err.HasLabel("RetryableError") {
			t.Errorf("operation %d: %v %v", i, out.Err, out.Err.Labels)
		}
	}
	attempts := started() - before
	if failed := len(outcomes) - succeeded; attempts < len(outcomes)+2*failed || attempts > 3*len(outcomes) {
		t.Errorf("%d attempts of %d operations, of which %d failed", attempts, len(outcomes), failed)
	}
	written := s.must("warden.coll", "countDocuments", `{"filter":{"i":{"$exists":true}}}`)
	testkit.Equal(t, "documents", written.AsInt64(), int64(succeeded))
	if seen, rejected := limiter(); seen-base != int64(attempts) || rejected == 0 {
		t.Errorf("the limiter saw %d requests of %d, and rejected %d", seen-base, attempts, rejected)
	}
	for i := range clients {
		testkit.Until(t, name(i)+" succeeds again", func() bool {
			return s.do(name(i)+".coll", "insertOne", `{"document":{}}`).Err == nil
		})
		testkit.Equal(t, "pools cleared by "+name(i), s.count(name(i), result.PoolCleared), 0)
	}
}
