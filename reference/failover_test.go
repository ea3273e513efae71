package reference_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// site is a test of the engine with client, database and collection open.
type site struct {
	engine.Test
	t testing.TB
}

func visit(t testing.TB, uri string, uriOptions bson.D) *site {
	t.Helper()
	e, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	test, err := e.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{test, t}
	t.Cleanup(func() {
		begun := time.Now()
		if err := s.End(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 8*time.Second { // less than a heartbeat
			t.Errorf("closing took %v", took)
		}
		_ = e.Close()
	})
	s.entity(uri, "client", "client", bson.D{{Key: "uriOptions", Value: uriOptions}})
	s.entity(uri, "database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
	s.entity(uri, "collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
	return s
}

func (s *site) entity(uri, kind, id string, o bson.D) {
	s.t.Helper()
	doc, err := bson.Marshal(append(bson.D{{Key: "id", Value: id}}, o...))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.Open(context.Background(), engine.Entity{Kind: kind, ID: id, URI: uri, Options: doc}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) do(object, name string, args bson.D) result.Outcome {
	doc, err := bson.Marshal(append(bson.D{}, args...))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.Do(context.Background(), engine.Operation{Object: object, Name: name, Arguments: doc})
}

// TestReadsThroughFailovers reads without a pause while primaries step down and
// members crash and come back. Every read succeeds: no more than one
// disturbance falls into a read, and the retry answers that one.
func TestReadsThroughFailovers(t *testing.T) {
	const selection = 10 * time.Second
	for _, c := range []struct {
		why     string
		options embedded.Options
		// disturb may have reads go on in the middle of it.
		disturb func(d *embedded.Deployment, n int, reads func()) error
	}{
		{"a stepdown loses no read: the second attempt waits for the new primary", embedded.Options{Topology: embedded.ReplicaSet},
			func(d *embedded.Deployment, _ int, _ func()) error { return d.StepDown() }},
		{"a crash of the primary, an election, and its return as a secondary", embedded.Options{Topology: embedded.ReplicaSet},
			func(d *embedded.Deployment, _ int, reads func()) error {
				at := d.Primary()
				if err := d.Kill(at); err != nil {
					return err
				}
				reads()
				return d.Restart(at)
			}},
		{"one mongos of two crashes: the other answers", embedded.Options{Topology: embedded.Sharded},
			func(d *embedded.Deployment, n int, reads func()) error {
				at := d.Hosts()[n%2]
				if err := d.Kill(at); err != nil {
					return err
				}
				reads()
				return d.Restart(at)
			}},
	} {
		t.Run(c.why, func(t *testing.T) {
			d, err := embedded.Start(context.Background(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			seed(t, d.URI())
			s := visit(t, d.URI(), bson.D{{Key: "serverSelectionTimeoutMS", Value: selection.Milliseconds()}})
			stop := make(chan struct{})
			var workers sync.WaitGroup
			readers := make([]*reader, 4)
			for i := range readers {
				r := &reader{tick: make(chan struct{}, 1)}
				readers[i] = r
				workers.Go(func() { r.run(t, s, stop) })
			}
			defer workers.Wait()
			ended := sync.OnceFunc(func() { close(stop) })
			defer ended()
			// Of the reads that a worker ends meanwhile, all but the first began
			// after the call.
			progress := func() {
				t.Helper()
				late := time.After(3 * selection)
				var until [4]int64
				for i, r := range readers {
					until[i] = r.ended.Load() + 25
				}
				for i, r := range readers {
					for r.ended.Load() < until[i] {
						select {
						case <-r.tick:
						case <-late:
							t.Fatalf("reader %d did not end 25 reads within %v", i, 3*selection)
						}
					}
				}
			}
			for n := range 6 {
				if err := c.disturb(d, n, progress); err != nil {
					t.Fatal(err)
				}
				progress()
			}
			ended()
			workers.Wait()
			for _, r := range readers {
				t.Logf("%d reads, %d of them retried, the slowest in %v", r.ended.Load(), r.retried, r.slowest)
				if r.slowest > 2*selection {
					t.Errorf("a read took %v: more than two server selections", r.slowest)
				}
			}
		})
	}
}

// reader reads until it is stopped, and counts the reads that ended.
type reader struct {
	ended   atomic.Int64
	tick    chan struct{}
	retried int
	slowest time.Duration
}

func (r *reader) run(t *testing.T, s *site, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		begun := time.Now()
		out := s.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}})
		r.slowest = max(r.slowest, time.Since(begun))
		if attempts(out) > 1 {
			r.retried++
		}
		if out.Err != nil {
			t.Errorf("%+v after %+v", out.Err, out.Decisions)
		} else if a, ok := out.Value.ArrayOK(); !ok || len(must(a.Values())) != 5 {
			t.Errorf("read %v", out.Value)
		}
		r.ended.Add(1)
		select {
		case r.tick <- struct{}{}:
		default:
		}
	}
}

func must[T any](v T, _ error) T { return v }

func attempts(o result.Outcome) int {
	n := 0
	for _, d := range o.Decisions {
		n = max(n, d.Attempt)
	}
	return n
}
