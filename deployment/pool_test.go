package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// puppet is a cluster without servers.
type puppet struct {
	cluster
	number int
	hurt   error // what mending gives
	stuck  error // what taking it down gives
	made   *puppets
}

func (p *puppet) Owned() bool { return true }

func (p *puppet) mend(ctx context.Context) error {
	p.made.count(func(n *counts) { n.mended++ })
	if p.made.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return p.hurt
}

func (p *puppet) close(context.Context) error {
	p.made.count(func(n *counts) { n.closed++ })
	return p.stuck
}

// puppets make them.
type puppets struct {
	mu     sync.Mutex
	counts counts
	fail   func(n int) error // the making of number n
	hold   chan struct{}     // if not nil, a making waits for its end
	begun  chan int          // if not nil, gets the number of each making
	hurt   error
	stuck  error
	hang   bool // mending takes until nobody waits for it
	notes  []string
}

type counts struct{ made, mended, closed int }

func (p *puppets) count(do func(*counts)) counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(&p.counts)
	return p.counts
}

func (p *puppets) make(ctx context.Context) (pooled, error) {
	n := p.count(func(n *counts) { n.made++ }).made
	if p.begun != nil {
		p.begun <- n
	}
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
	return &puppet{number: n, hurt: p.hurt, stuck: p.stuck, made: p}, nil
}

func (p *puppets) note(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, s)
}

// pool gives a pool of so many slots.
func (p *puppets) pool(t *testing.T, slots int) *pool {
	t.Helper()
	pool := newPool(p.note)
	t.Cleanup(func() { _ = pool.Close() })
	var all []*poolSlot
	for n := range slots {
		all = append(all, &poolSlot{name: fmt.Sprintf("slot %d", n), make: p.make})
	}
	pool.add(Description{Name: "puppets"}, all...)
	return pool
}

// soon bounds waits for what has to come.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("waited a minute"))
	t.Cleanup(cancel)
	return ctx
}

func borrowed(t *testing.T, p *pool) Deployment {
	t.Helper()
	d, err := p.Acquire(soon(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Clusters are made as far as workers wait for them, and each is lent to one
// at a time.
func TestPoolLendsEachToOne(t *testing.T) {
	p := &puppets{}
	pool := p.pool(t, 3)
	d := borrowed(t, pool)
	pool.Release(d, false)
	if again := borrowed(t, pool); again != d {
		t.Error("an idle cluster is not lent again")
	}
	if made := p.count(func(*counts) {}).made; made != 1 {
		t.Errorf("%d clusters were made for one worker", made)
	}
	pool.Release(d, false)

	var mu sync.Mutex
	lent := make(map[Deployment]bool)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 100 {
				d, err := pool.Acquire(soon(t), 0)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if lent[d] {
					t.Error("one cluster was lent to two")
				}
				lent[d] = true
				mu.Unlock()
				mu.Lock()
				lent[d] = false
				mu.Unlock()
				pool.Release(d, false)
			}
		})
	}
	workers.Wait()
	if made := p.count(func(*counts) {}).made; made > 3 {
		t.Errorf("%d clusters were made, and there is room for 3", made)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if n := p.count(func(*counts) {}); n.closed != n.made {
		t.Errorf("%d were made, %d taken down", n.made, n.closed)
	}
}

// A worker takes what is free first: it does not wait for what is made for it.
func TestPoolDoesNotWaitForAMaking(t *testing.T) {
	p := &puppets{}
	pool := p.pool(t, 2)
	d := borrowed(t, pool)
	p.hold, p.begun = make(chan struct{}), make(chan int, 1)
	got := make(chan Deployment)
	go func() { d, _ := pool.Acquire(soon(t), 0); got <- d }()
	<-p.begun
	pool.Release(d, false)
	if <-got != d {
		t.Error("it waited for the second one")
	}
	close(p.hold)
}

func TestPoolOfBrokenClusters(t *testing.T) {
	for _, r := range []struct {
		reason string
		hurt   error
		stuck  error
		again  bool // the very same is lent again
		made   int
		fails  string // what Acquire says
		note   string
	}{
		{"what can be mended is", nil, nil, true, 1, "", ""},
		{"what cannot is made anew", errors.New("no primary"), nil, false, 2, "", "slot 0 is made anew: no primary"},
		{"what cannot be taken down is given up", errors.New("no primary"), errors.New("service gone"), false, 1, "no cluster is left: no primary\nservice gone",
			"slot 0 is out, 0 of its kind are left: no primary\nservice gone"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			p := &puppets{hurt: r.hurt, stuck: r.stuck}
			pool := p.pool(t, 1)
			d := borrowed(t, pool)
			pool.Release(d, true)
			again, err := pool.Acquire(soon(t), 0)
			if r.fails != "" {
				if err == nil || err.Error() != r.fails {
					t.Errorf("%v", err)
				}
			} else if err != nil || (again == d) != r.again {
				t.Errorf("the same: %t, %v", again == d, err)
			}
			if n := p.count(func(*counts) {}); n.made != r.made {
				t.Errorf("%d were made, want %d", n.made, r.made)
			}
			if got := strings.Join(p.notes, "|"); got != r.note {
				t.Errorf("people are told %q, want %q", got, r.note)
			}
			// One that could not be taken down is tried again at the end.
			if err := pool.Close(); !errors.Is(err, r.stuck) {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// A cluster that does not come up is tried twice; then the others do the work,
// and without any each test says why.
func TestPoolOfClustersThatDoNotComeUp(t *testing.T) {
	p := &puppets{fail: func(n int) error {
		if n == 1 {
			return nil
		}
		return fmt.Errorf("making %d failed", n)
	}}
	pool := p.pool(t, 2)
	d := borrowed(t, pool)
	got := make(chan error)
	go func() { _, err := pool.Acquire(soon(t), 0); got <- err }()
	deadline := soon(t)
	for p.count(func(*counts) {}).made < 3 {
		if deadline.Err() != nil {
			t.Fatal("it is not tried twice")
		}
		time.Sleep(time.Millisecond)
	}
	pool.Release(d, false)
	if err := <-got; err != nil {
		t.Errorf("the other cluster is not used: %v", err)
	}

	none := &puppets{fail: func(n int) error { return fmt.Errorf("making %d failed", n) }}
	pool = none.pool(t, 2)
	for range 2 {
		if _, err := pool.Acquire(soon(t), 0); err == nil || !strings.HasPrefix(err.Error(), "no cluster is left: making ") {
			t.Errorf("%v", err)
		}
	}
	if n := none.count(func(*counts) {}); n.made > 4 {
		t.Errorf("%d tries for two clusters", n.made)
	}
}

func TestPoolWaitsEnd(t *testing.T) {
	p := &puppets{}
	pool := p.pool(t, 1)
	d := borrowed(t, pool)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	if _, err := pool.Acquire(ctx, 0); err == nil || err.Error() != "waiting for a cluster to be free: interrupted" {
		t.Error(err)
	}
	if _, err := pool.Acquire(ctx, 1); err == nil {
		t.Error("there is no offer 1")
	}
	got := make(chan error)
	go func() { _, err := pool.Acquire(soon(t), 0); got <- err }()
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("who waits is not told of the end: %v", err)
	}
	pool.Release(d, true) // late, and no reason to mend anything
	if n := p.count(func(*counts) {}); n.mended != 0 || n.closed != 1 {
		t.Errorf("%+v", n)
	}
}

// What is being made at the end is waited for, so that it can be taken down;
// but not forever.
func TestPoolClosesWhatIsBeingMade(t *testing.T) {
	for _, patient := range []bool{true, false} {
		p := &puppets{hold: make(chan struct{}), begun: make(chan int, 1)}
		pool := p.pool(t, 1)
		ctx, cancel := context.WithCancel(soon(t))
		got := make(chan error)
		go func() { _, err := pool.Acquire(ctx, 0); got <- err }()
		<-p.begun
		cancel()
		if err := <-got; err == nil {
			t.Error("the wait was cancelled")
		}
		want := 1
		if patient {
			time.AfterFunc(20*time.Millisecond, func() { close(p.hold) })
		} else {
			pool.closeLimit, want = 20*time.Millisecond, 0
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		if n := p.count(func(*counts) {}); n.closed != want {
			t.Errorf("patient %t: %d taken down, want %d", patient, n.closed, want)
		}
	}
}

// Nobody waits for what is being mended at the end: it is taken down.
func TestPoolClosesWhatIsBeingMended(t *testing.T) {
	p := &puppets{hang: true}
	pool := p.pool(t, 1)
	pool.Release(borrowed(t, pool), true)
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if n := p.count(func(*counts) {}); n.mended != 1 || n.closed != 1 {
		t.Errorf("%+v", n)
	}
	if !Mends(pool) || !Mends(WithURIOptions(pool, []URIOption{{"compressors", "zlib"}})) || Mends(&clusterSource{}) {
		t.Error("which sources mend is not told rightly")
	}
}

// What stands behind one offer is as many as have its name.
func TestPoolMergesOffers(t *testing.T) {
	p := &puppets{}
	pool := newPool(nil)
	for _, name := range []string{"a", "b", "a"} {
		pool.add(Description{Name: name}, &poolSlot{make: p.make})
	}
	if len(pool.Offers()) != 2 || len(pool.offers[0].slots) != 2 {
		t.Errorf("%d offers, %d behind the first", len(pool.Offers()), len(pool.offers[0].slots))
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}
