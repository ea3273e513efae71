package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/orchestration"
)

// poolSlot is a place for one cluster. Its state is guarded by the pool.
type poolSlot struct {
	name string // for people
	make func(ctx context.Context) (*cluster, error)
	// unique: a cluster that was lost is not made again.
	unique  bool
	offer   *poolOffer // nil until it is added
	state   slotState
	cluster *cluster // unless absent or dead
	tries   int      // to make one in a row that failed
	fault   error    // of the last try
}

type slotState uint8

const (
	slotAbsent slotState = iota // to be made when somebody waits
	slotBusy                    // being made or mended
	slotIdle
	slotLent
	slotDead // nothing comes of it any more
)

// count says how many slots are in a state.
func count(slots []*poolSlot, state slotState) (n int) {
	for _, s := range slots {
		if s.state == state {
			n++
		}
	}
	return n
}

// slots gives places for so many equal clusters.
func slots(n int, what string, make func(ctx context.Context) (*cluster, error)) (all []*poolSlot) {
	for i := range n {
		all = append(all, &poolSlot{name: fmt.Sprintf("%s number %d", what, i+1), make: make})
	}
	return all
}

// mostTries is how often in a row a cluster may fail to come up.
const mostTries = 2

// poolOffer is what several equal clusters stand behind.
type poolOffer struct {
	slots   []*poolSlot
	waiting int   // callers of Acquire
	fault   error // of the last slot that died
}

// pool is a source of clusters that are costly to make: each is lent to one
// worker at a time, made when somebody waits for it, and mended or made anew
// when a test broke it.
type pool struct {
	note     func(string)
	patience time.Duration // bounds the wait for what is being made at the end
	mends    bool          // clusters of others, too
	about    []Description
	cleanUp  cleanUps // after all clusters are gone

	making context.Context // ends when nobody waits for what is being made
	cancel context.CancelFunc
	open   context.Context // ends with the first Close: what is broken is not mended then
	close  context.CancelFunc
	ending context.Context // bounds all that takes clusters down, from Close on
	end    context.CancelCauseFunc
	work   sync.WaitGroup // goroutines that make and mend

	mu      sync.Mutex
	slots   []*poolSlot // all of them, also those that no offer has yet
	offers  []*poolOffer
	changed chan struct{} // closed at each change, and made anew
}

// Mends reports whether a source deals with deployments that broke itself, also
// with those that are not ours: it puts them right, or goes on with others, or
// says at once that none is left.
func Mends(s Source) bool {
	p, ok := s.(*pool)
	return ok && p.mends
}

// CloseLimit bounds the closing of a source, whatever a service does: the wait
// for clusters that are being made, and the taking down of all. What is left is in
// the error, and in the ledger. Whoever kills a run waits for longer.
const CloseLimit = makingPatience + orchestration.DeleteLimit

const (
	makingPatience = 30 * time.Second
	mendLimit      = 2 * time.Minute // bounds the putting right of one cluster
)

func newPool(note func(string)) *pool {
	if note == nil {
		note = func(string) {}
	}
	p := &pool{note: note, patience: makingPatience, changed: make(chan struct{})}
	p.making, p.cancel = context.WithCancel(context.Background())
	p.open, p.close = context.WithCancel(context.Background())
	p.ending, p.end = context.WithCancelCause(context.Background())
	return p
}

// add puts slots behind the offer of the same name, or behind a new one. No
// worker has seen the pool yet.
func (p *pool) add(about Description, slots ...*poolSlot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.about, func(d Description) bool { return d.Name == about.Name })
	if i < 0 {
		i = len(p.offers)
		p.about, p.offers = append(p.about, about), append(p.offers, new(poolOffer))
	}
	for _, s := range slots {
		s.offer = p.offers[i]
		s.offer.slots = append(s.offer.slots, s)
		if !slices.Contains(p.slots, s) {
			p.slots = append(p.slots, s)
		}
	}
}

func (p *pool) Offers() []Description { return p.about }

func (p *pool) Acquire(ctx context.Context, i int) (Deployment, error) {
	if i < 0 || i >= len(p.offers) {
		return nil, fmt.Errorf("there is no offer %d of %d", i, len(p.offers))
	}
	o := p.offers[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	o.waiting++
	defer func() { o.waiting-- }()
	for {
		if p.open.Err() != nil {
			return nil, errors.New("the source of deployments is closed")
		}
		for _, s := range o.slots {
			if s.state == slotIdle && s.cluster.Dead() != nil {
				p.occupy(s)
			}
			if s.state == slotIdle {
				c := s.cluster
				s.state = slotLent
				p.mu.Unlock()
				defer p.mu.Lock()
				if c.lock != nil { // no fail point is on between tests
					c.lock.Renew(ctx, lock.RenewEvery)
				}
				return c, nil
			}
		}
		if count(o.slots, slotDead) == len(o.slots) {
			return nil, fmt.Errorf("no cluster is left: %w", o.fault)
		}
		p.grow(o)
		if err := p.wait(ctx); err != nil {
			return nil, fmt.Errorf("waiting for a cluster to be free: %w", err)
		}
	}
}

// wait gives the lock away until something changes.
func (p *pool) wait(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change wakes all who wait.
func (p *pool) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// grow begins to make as many clusters as callers wait for.
func (p *pool) grow(o *poolOffer) {
	wanted := o.waiting - count(o.slots, slotBusy)
	for _, s := range o.slots {
		if s.state == slotAbsent && wanted > 0 {
			wanted--
			p.occupy(s)
		}
	}
}

// occupy makes the cluster of a slot, or puts the one that it has right. One that
// stays broken is taken down: then it is made anew when somebody waits, if it can be.
func (p *pool) occupy(s *poolSlot) {
	s.state = slotBusy
	c := s.cluster
	p.work.Go(func() {
		var err, down error
		if c == nil {
			c, err = s.make(p.making)
		} else if err = p.mend(c); err != nil {
			down = c.cleanUp.run(p.ending)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		defer p.change()
		switch {
		case err == nil:
			s.state, s.cluster, s.tries = slotIdle, c, 0
		case down != nil: // what cannot be taken down is tried once more at the end
			p.bury(s, errors.Join(err, down))
			s.cluster = c
		case s.cluster == nil: // it was not made
			s.state, s.fault = slotAbsent, err
			if s.tries++; s.tries >= mostTries {
				p.bury(s, err)
			}
		case s.unique:
			p.bury(s, err)
		default:
			s.state, s.cluster = slotAbsent, nil
			if p.open.Err() == nil {
				p.note(fmt.Sprintf("%s is made anew: %s", s.name, err))
			}
		}
	})
}

// mend puts a cluster right, if somebody can and while the pool is open. It leaves
// those of others as they are, and gives up ours: a new one costs little, and is known
// to be right.
func (p *pool) mend(c *cluster) error {
	ctx, cancel := context.WithTimeoutCause(p.open, mendLimit, fmt.Errorf("it was not right again within %s", mendLimit))
	defer cancel()
	switch {
	case c.right != nil:
		return c.right(ctx)
	case c.owned:
		return cmp.Or(c.Dead(), errors.New("a test left it in a state that is not known"))
	}
	return nil
}

// bury gives a slot up. Who waits for the last one gets the reason; who has
// others left is told.
func (p *pool) bury(s *poolSlot, err error) {
	o := s.offer
	s.state, s.cluster, o.fault = slotDead, nil, err
	if p.open.Err() != nil {
		return
	}
	left := len(o.slots) - count(o.slots, slotDead)
	p.note(fmt.Sprintf("%s is out, %d of its kind are left: %s", s.name, left, err))
}

// Release takes a cluster back. One with a server that died is not lent again,
// whatever the test says.
func (p *pool) Release(d Deployment, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.slots, func(s *poolSlot) bool { return s.state == slotLent && Deployment(s.cluster) == d })
	switch {
	case i < 0: // it was taken down
	case p.open.Err() != nil || !broken && d.Dead() == nil:
		p.slots[i].state = slotIdle
		p.change()
	default:
		p.occupy(p.slots[i])
	}
}

// fill makes the clusters of some slots, at once, and waits for all. What was
// begun when ctx ends goes on until Close.
func (p *pool) fill(ctx context.Context, slots []*poolSlot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots = append(p.slots, slots...)
	for _, s := range slots {
		p.occupy(s)
	}
	for count(slots, slotBusy) > 0 {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	var errs []error
	for _, s := range slots {
		errs = append(errs, s.fault)
	}
	return errors.Join(errs...)
}

// Close takes down all clusters that are ours, within CloseLimit. It waits for
// those that are being made, so that they can be.
func (p *pool) Close() error {
	p.mu.Lock()
	busy := count(p.slots, slotBusy) > 0
	p.close()
	p.change()
	p.mu.Unlock()
	if busy && p.patience > 0 {
		p.note(fmt.Sprintf("waiting for clusters that are being made or mended, for at most %s, to take them down", p.patience))
	}
	limit := time.AfterFunc(CloseLimit, func() { p.end(fmt.Errorf("not taken down within %s", CloseLimit)) })
	defer limit.Stop()
	patience := time.AfterFunc(p.patience, p.cancel)
	var closing sync.WaitGroup
	errs := make([]error, len(p.slots))
	p.takeDown(&closing, errs)
	p.work.Wait()
	patience.Stop()
	p.cancel()
	p.takeDown(&closing, errs)
	closing.Wait()
	return errors.Join(append(errs, p.cleanUp.run(p.ending))...)
}

// takeDown begins to take down each cluster that is neither being made nor mended.
func (p *pool) takeDown(closing *sync.WaitGroup, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.slots {
		if c := s.cluster; c != nil && s.state != slotBusy {
			s.state, s.cluster = slotDead, nil
			closing.Go(func() { errs[i] = c.cleanUp.run(p.ending) })
		}
	}
}
