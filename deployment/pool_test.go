package deployment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// puppets make clusters without servers. In a synctest bubble whoever waits for
// what never comes ends the test.
type puppets struct {
	notes
	made, mended, closed atomic.Int32
	fail                 func(n int32) error // the making of number n
	hold                 chan struct{}       // if not nil, a making waits for its end
	hurt, stuck          error               // what mending and taking down give
	hang                 bool                // mending takes until nobody waits for it
}

type puppet struct {
	cluster
	*puppets
	lent atomic.Bool
}

func (p *puppet) Owned() bool { return true }

func (p *puppet) mend(ctx context.Context) error {
	p.mended.Add(1)
	if p.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return p.hurt
}

func (p *puppet) close(context.Context) error {
	p.closed.Add(1)
	return p.stuck
}

func (p *puppets) make(ctx context.Context) (pooled, error) {
	n := p.made.Add(1)
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if p.fail != nil {
		if err := p.fail(n); err != nil {
			return nil, err
		}
	}
	return &puppet{puppets: p}, nil
}

// pool gives a pool of so many slots.
func (p *puppets) pool(t *testing.T, slots int) *pool {
	t.Helper()
	pool := newPool(p.add)
	t.Cleanup(func() { _ = pool.Close() })
	for n := range slots {
		pool.add(Description{Name: "puppets"}, &poolSlot{name: fmt.Sprintf("slot %d", n), make: p.make})
	}
	testkit.Equal(t, "offers", len(pool.Offers()), 1)
	return pool
}

// later borrows a cluster once the pool has one.
func later(t *testing.T, p *pool) <-chan Deployment {
	t.Helper()
	got := make(chan Deployment, 1)
	go func() { d, _ := p.Acquire(t.Context(), 0); got <- d }()
	synctest.Wait()
	return got
}

// Clusters are made as far as workers wait for them, and each is lent to one
// at a time.
func TestPoolLendsEachToOne(t *testing.T) {
	p := &puppets{}
	pool := p.pool(t, 3)
	d := borrow(t, pool)
	pool.Release(d, false)
	if borrow(t, pool) != d || p.made.Load() != 1 {
		t.Errorf("%d clusters were made for one worker", p.made.Load())
	}
	pool.Release(d, false)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 100 {
				d, err := pool.Acquire(testkit.Context(t), 0)
				if err != nil || !d.(*puppet).lent.CompareAndSwap(false, true) {
					t.Error("one cluster was lent to two, or none:", err)
					return
				}
				d.(*puppet).lent.Store(false)
				pool.Release(d, false)
			}
		})
	}
	workers.Wait()
	testkit.Check(t, pool.Close())
	if made := p.made.Load(); made > 3 || p.closed.Load() != made {
		t.Errorf("%d clusters were made, with room for 3, and %d taken down", made, p.closed.Load())
	}
}

// A worker takes what is free first: it does not wait for what is made for it.
func TestPoolDoesNotWaitForAMaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppets{}
		pool := p.pool(t, 2)
		d := borrow(t, pool)
		p.hold = make(chan struct{})
		got := later(t, pool)
		testkit.Equal(t, "made", p.made.Load(), 2)
		pool.Release(d, false)
		if <-got != d {
			t.Error("it waited for the second one")
		}
		close(p.hold)
	})
}

func TestPoolOfBrokenClusters(t *testing.T) {
	hurt, stuck := errors.New("no primary"), errors.New("service gone")
	for _, r := range []struct {
		reason string
		p      *puppets
		again  bool // the very same is lent again
		made   int
		fails  string // what Acquire says
		note   string
	}{
		{"what can be mended is", &puppets{}, true, 1, "", ""},
		{"what cannot is made anew", &puppets{hurt: hurt}, false, 2, "", "slot 0 is made anew: no primary"},
		{"nor can what takes too long", &puppets{hang: true}, false, 2, "", "slot 0 is made anew: it was not right again within 2m0s"},
		{"what cannot be taken down is given up", &puppets{hurt: hurt, stuck: stuck}, false, 1, "no cluster is left: no primary\nservice gone",
			"slot 0 is out, 0 of its kind are left: no primary\nservice gone"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := r.p.pool(t, 1)
				d := borrow(t, pool)
				pool.Release(d, true)
				again, err := pool.Acquire(t.Context(), 0)
				if r.fails != "" {
					testkit.Fails(t, err, r.fails)
				} else if err != nil || (again == d) != r.again {
					t.Errorf("the same: %t, %v", again == d, err)
				}
				testkit.Equal(t, "made", r.p.made.Load(), r.made)
				testkit.Equal(t, "people hear", r.p, r.note)
				// One that could not be taken down is tried again at the end.
				if err := pool.Close(); !errors.Is(err, r.p.stuck) {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// A cluster that does not come up is tried twice; then the others do the work,
// and without any each test says why.
func TestPoolOfClustersThatDoNotComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := func(n int32) error { return fmt.Errorf("making %d failed", n) }
		p := &puppets{}
		pool := p.pool(t, 2)
		d := borrow(t, pool)
		p.fail = fail
		got := later(t, pool)
		testkit.Equal(t, "tries", p.made.Load(), 1+mostTries)
		testkit.Equal(t, "people hear", p, "slot 1 is out, 1 of its kind are left: making 3 failed")
		pool.Release(d, false)
		if <-got != d {
			t.Error("the other cluster is not used")
		}
		none := &puppets{fail: fail}
		pool = none.pool(t, 2)
		for range 2 {
			_, err := pool.Acquire(t.Context(), 0)
			testkit.Fails(t, err, "no cluster is left: making ")
		}
		if n := none.made.Load(); n > 2*mostTries {
			t.Errorf("%d tries for two clusters", n)
		}
	})
}

func TestPoolWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppets{}
		pool := p.pool(t, 1)
		d := borrow(t, pool)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("interrupted"))
		_, err := pool.Acquire(ctx, 0)
		testkit.Fails(t, err, "waiting for a cluster to be free: interrupted")
		_, err = pool.Acquire(ctx, 1)
		testkit.Fails(t, err, "no offer 1 of 1")
		got := later(t, pool)
		testkit.Check(t, pool.Close())
		if d := <-got; d != nil {
			t.Error("a closed pool lends a cluster")
		}
		_, err = pool.Acquire(t.Context(), 0)
		testkit.Fails(t, err, "closed")
		pool.Release(d, true) // late, and no reason to mend anything
		testkit.Equal(t, "mended and closed", []int32{p.mended.Load(), p.closed.Load()}, []int32{0, 1})
	})
}

// What is being made at the end is waited for, so that it can be taken down, but
// not forever; what is being mended is not waited for.
func TestPoolCloses(t *testing.T) {
	for _, r := range []struct {
		reason string
		making time.Duration // 0: it is mended
		took   time.Duration
		closed int
	}{
		{"what comes up is taken down", 20 * time.Second, 20 * time.Second, 1},
		{"what does not come up is given up", time.Hour, 30 * time.Second, 0},
		{"what hangs while it is mended is taken down", 0, 0, 1},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppets{hang: true}
				pool := p.pool(t, 1)
				if r.making > 0 {
					p.hold = make(chan struct{})
					later(t, pool)
					time.AfterFunc(r.making, func() { close(p.hold) })
				} else {
					pool.Release(borrow(t, pool), true)
				}
				begun := time.Now()
				testkit.Check(t, pool.Close())
				testkit.Equal(t, "closing took", time.Since(begun), r.took)
				testkit.Equal(t, "taken down", p.closed.Load(), r.closed)
				testkit.Says(t, p.String(), "for at most 30s")
			})
		})
	}
}

// Each offer can be had, serves clients through all its connection strings, and
// a probe of it finds what the offer promised.
func TestEmbeddedKeepsItsOffers(t *testing.T) {
	for _, r := range []struct {
		reason  string
		options EmbeddedOptions
		offers  string
	}{
		{"everything", EmbeddedOptions{Version: "8.0"}, "replicaset 8.0, replicaset 8.0 auth, sharded 8.0, sharded 8.0 auth, " +
			"load-balanced 8.0, load-balanced 8.0 auth, single 8.0, single 8.0 auth"},
		{"load balancing came with 5.0", EmbeddedOptions{Version: "4.2"},
			"replicaset 4.2, replicaset 4.2 auth, sharded 4.2, sharded 4.2 auth, single 4.2, single 4.2 auth"},
		{"every version, the default one first", EmbeddedOptions{Version: AnyVersion, Topologies: []Topology{LoadBalanced}, Auth: new(bool)},
			"load-balanced 8.0, load-balanced 8.2, load-balanced 9.0, load-balanced 7.0, load-balanced 6.0, load-balanced 5.0"},
		{"one topology with TLS", EmbeddedOptions{Topologies: []Topology{Sharded}, Version: "7.0", TLS: true, Auth: new(bool)}, "sharded 7.0"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			s := opened[Source](t)(OpenEmbedded(t.Context(), r.options))
			testkit.Equal(t, "offers", offerNames(s), r.offers)
			for i, offer := range s.Offers() {
				acquire := func() Deployment {
					d, err := s.Acquire(testkit.Context(t), i)
					testkit.Check(t, err)
					return d
				}
				d := acquire()
				usable(t, "", d)
				found, err := probe(testkit.Context(t), d.URI())
				testkit.Check(t, err)
				testkit.Equal(t, "a probe", []any{found.Topology, found.Version, found.ReplicaSetShards, d.Owned()},
					[]any{offer.Topology, offer.Version, offer.ReplicaSetShards, true})
				s.Release(d, false)
				if acquire() != d {
					t.Errorf("%s: an idle deployment is not lent again", offer.Name)
				}
				s.Release(d, true)
				if acquire() == d {
					t.Errorf("%s: a broken deployment is lent again", offer.Name)
				}
			}
		})
	}
	for want, o := range map[string]EmbeddedOptions{
		"server version 4.4 has no load-balanced deployments": {Version: "4.4", Topologies: []Topology{LoadBalanced}},
		`"3.0"`: {Version: "3.0"},
		`topology "sharded-replicaset" cannot be embedded`: {Topologies: []Topology{ShardedReplicaSet}},
	} {
		_, err := OpenEmbedded(t.Context(), o)
		testkit.Fails(t, err, want)
	}
}
