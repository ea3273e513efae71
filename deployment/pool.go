package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/text/plural"
)

// poolSlot is a place for one cluster. The pool's mutex guards its state.
type poolSlot struct {
	name    string // for messages
	make    func(ctx context.Context) (*cluster, error)
	unique  bool       // a lost cluster is not replaced
	offer   *poolOffer // nil until added
	state   slotState
	cluster *cluster   // nil if absent; if given up, one that could not be removed
	free    []*cluster // its views that are not lent, if it is ready
	broken  bool       // it is repaired once all its views are free
	tries   int        // consecutive failed attempts to create it
	fault   error      // of the last attempt
}

type slotState uint8

const (
	slotAbsent slotState = iota // created when requested
	slotBusy                    // being created or repaired
	slotReady
	slotDead // given up
)

// ready sets the cluster of a slot.
func (s *poolSlot) ready(c *cluster) *poolSlot {
	s.state, s.cluster, s.free, s.broken, s.tries, s.fault = slotReady, c, c.views(), false, 0, nil
	return s
}

// unused reports whether no worker has a view of the cluster.
func (s *poolSlot) unused() bool { return len(s.free) == len(s.cluster.views()) }

func count(slots []*poolSlot, state slotState) (n int) {
	for _, s := range slots {
		if s.state == state {
			n++
		}
	}
	return n
}

// slots returns slots for n equal clusters.
func slots(n int, what string, start func(ctx context.Context) (*cluster, error)) (all []*poolSlot) {
	for i := range n {
		all = append(all, &poolSlot{name: fmt.Sprintf("%s number %d", what, i+1), make: start})
	}
	return all
}

// mostTries is the number of consecutive failures before a cluster is given up.
const mostTries = 2

// poolOffer is an offer with the slots of its equal clusters.
type poolOffer struct {
	slots   []*poolSlot
	waiting int   // callers of Acquire
	fault   error // of the last slot that was given up
}

// pool is a source of expensive clusters. Each is used by one worker at a time, created on demand, and repaired or
// replaced when a test broke it.
type pool struct {
	note        func(string)
	makingLimit time.Duration // bounds the wait of Close for clusters being created
	repairs     bool          // see Repairs
	about       []Description
	cleanUp     cleanUps // runs after all clusters are removed
	keepLogs    atomic.Bool

	making context.Context // bounds creating clusters
	cancel context.CancelFunc
	open   context.Context // until Close; bounds repairs
	close  context.CancelFunc
	ending context.Context // bounds removing clusters
	end    context.CancelCauseFunc
	work   sync.WaitGroup // goroutines that create and repair

	mu      sync.Mutex
	slots   []*poolSlot // including those without an offer yet
	offers  []*poolOffer
	changed chan struct{} // closed and replaced at each change
}

// Repairs implements Source.
func (p *pool) Repairs() bool { return p.repairs }

// KeepLogs implements Source. Only local clusters have logs to keep.
func (p *pool) KeepLogs() { p.keepLogs.Store(true) }

// CloseLimit bounds Source.Close, whatever a service does: the wait for clusters being created, and the removal of all.
// What is left is named in the error and recorded in the ledger. A process that kills a run must wait longer.
const CloseLimit = makingLimit + orchestration.DeleteLimit

const (
	makingLimit = 30 * time.Second
	repairLimit = 2 * time.Minute // of one cluster
)

func newPool(note func(string)) *pool {
	p := &pool{note: orIgnore(note), makingLimit: makingLimit, changed: make(chan struct{})}
	p.making, p.cancel = context.WithCancel(context.Background())
	p.open, p.close = context.WithCancel(context.Background())
	p.ending, p.end = context.WithCancelCause(context.Background())
	return p
}

// add adds slots to the offer of the same name, or to a new one. It is not called after workers have started.
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
		if s.state == slotDead {
			s.offer.fault = s.fault
		}
		s.offer.slots = append(s.offer.slots, s)
		if !slices.Contains(p.slots, s) {
			p.slots = append(p.slots, s)
		}
	}
}

func (p *pool) Offers() []Description { return p.about }

func (p *pool) Acquire(ctx context.Context, i int) (Deployment, error) {
	if i < 0 || i >= len(p.offers) {
		return nil, fmt.Errorf("no offer %d of %d", i, len(p.offers))
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
			if s.state == slotReady && s.cluster.Dead() != nil {
				p.breaks(s)
			}
			if last := len(s.free) - 1; s.state == slotReady && !s.broken && last >= 0 {
				c := s.free[last]
				s.free = s.free[:last]
				p.mu.Unlock()
				defer p.mu.Lock()
				if c.lock != nil { // between tests, no fail point is on
					c.lock.Renew(ctx, lock.RenewEvery)
				}
				return c, nil
			}
		}
		if count(o.slots, slotDead) == len(o.slots) {
			return nil, fmt.Errorf("no cluster is left: %w", o.fault)
		}
		// As many clusters are created as callers wait for.
		wanted := o.waiting - count(o.slots, slotBusy)
		for _, s := range o.slots {
			if s.state == slotAbsent && wanted > 0 {
				wanted--
				p.prepare(s)
			}
		}
		if err := p.wait(ctx); err != nil {
			return nil, fmt.Errorf("waiting for a cluster to be free: %w", err)
		}
	}
}

// wait unlocks the pool until something changes.
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

// change wakes all waiters.
func (p *pool) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// prepare starts creating or repairing the cluster of a slot. A cluster that cannot be repaired is removed, and
// replaced on demand unless it is unique.
func (p *pool) prepare(s *poolSlot) {
	s.state = slotBusy
	c := s.cluster
	p.work.Go(func() {
		var err, left error
		if c == nil {
			c, err = s.make(p.making)
		} else if err = p.repair(c); err != nil {
			left = c.cleanUp.run(p.ending)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		defer p.change()
		switch {
		case err == nil:
			s.ready(c)
		case left != nil: // Close tries again to remove it
			p.giveUp(s, errors.Join(err, left))
			s.cluster = c
		case s.cluster == nil: // it was not created
			s.state, s.fault = slotAbsent, err
			if s.tries++; s.tries >= mostTries {
				p.giveUp(s, err)
			}
		case s.unique:
			p.giveUp(s, err)
		default:
			s.state, s.cluster = slotAbsent, nil
			if p.open.Err() == nil {
				p.note(fmt.Sprintf("%s is replaced: %s", s.name, err))
			}
		}
	})
}

// repair repairs a cluster. Without a repair function, it leaves existing clusters unchanged, and returns an error for
// our own, because they are cheap to replace.
func (p *pool) repair(c *cluster) error {
	ctx, cancel := context.WithTimeoutCause(p.open, repairLimit, fmt.Errorf("it was not repaired within %s", repairLimit))
	defer cancel()
	switch {
	case c.repair != nil:
		return c.repair(ctx)
	case c.owned:
		return cmp.Or(c.Dead(), errors.New("a test left it in an unknown state"))
	}
	return nil
}

// giveUp gives up a slot. If it is the last one of its offer, callers of Acquire get the error.
func (p *pool) giveUp(s *poolSlot, err error) {
	o := s.offer
	s.state, s.cluster, s.fault = slotDead, nil, err
	if o == nil { // fill returns the error
		return
	}
	o.fault = err
	if p.open.Err() == nil {
		left := len(o.slots) - count(o.slots, slotDead)
		p.note(fmt.Sprintf("%s is given up, %s of its kind left: %s", s.name, plural.Of(left, "cluster"), err))
	}
}

// Release returns a cluster, or a view of one. If one of its servers has ended, it counts as broken.
func (p *pool) Release(d Deployment, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	view, _ := d.(*cluster)
	i := slices.IndexFunc(p.slots, func(s *poolSlot) bool {
		return s.state == slotReady && slices.Contains(s.cluster.views(), view)
	})
	if i < 0 { // it was removed
		return
	}
	s := p.slots[i]
	s.free = append(s.free, view)
	if p.open.Err() == nil && (broken || s.broken || d.Dead() != nil) {
		p.breaks(s)
	}
	p.change()
}

// breaks makes a cluster be repaired once all its views are free.
func (p *pool) breaks(s *poolSlot) {
	if s.broken = true; s.unused() {
		p.prepare(s)
	}
}

// fill creates the clusters of some slots concurrently and waits for all. It tries again to create one that failed,
// unless it is unique. When ctx ends, they continue until Close.
func (p *pool) fill(ctx context.Context, slots []*poolSlot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range slots {
		if s.offer == nil {
			p.slots = append(p.slots, s)
		}
		p.prepare(s)
	}
	for count(slots, slotBusy) > 0 {
		if err := p.wait(ctx); err != nil {
			return err
		}
		for _, s := range slots {
			if s.state == slotAbsent && !s.unique && ctx.Err() == nil {
				p.prepare(s)
			}
		}
	}
	var errs []error
	for _, s := range slots {
		errs = append(errs, s.fault)
	}
	return errors.Join(errs...)
}

// Close removes all clusters that are ours, within CloseLimit. It waits for those that are being created.
func (p *pool) Close() error {
	p.mu.Lock()
	busy := count(p.slots, slotBusy) > 0
	p.close()
	p.change()
	p.mu.Unlock()
	if busy && p.makingLimit > 0 {
		p.note(fmt.Sprintf("waiting up to %s for clusters that are being created or repaired, to remove them", p.makingLimit))
	}
	limit := time.AfterFunc(CloseLimit, func() { p.end(fmt.Errorf("not removed within %s", CloseLimit)) })
	defer limit.Stop()
	giveUp := time.AfterFunc(p.makingLimit, p.cancel)
	var closing sync.WaitGroup
	errs := make([]error, len(p.slots))
	p.remove(&closing, errs)
	p.work.Wait()
	giveUp.Stop()
	p.cancel()
	p.remove(&closing, errs)
	closing.Wait()
	return errors.Join(append(errs, p.cleanUp.run(p.ending))...)
}

// remove starts removing each cluster that is neither being created nor repaired.
func (p *pool) remove(closing *sync.WaitGroup, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.slots {
		if c := s.cluster; c != nil && s.state != slotBusy {
			s.state, s.cluster = slotDead, nil
			closing.Go(func() { errs[i] = c.cleanUp.run(p.ending) })
		}
	}
}
