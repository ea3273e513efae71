// Package lock keeps other runs away from a deployment that is not ours.
package lock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment/wire"
	"github.com/unified-test-runner/utr/internal/ledger"
)

// The lock of a deployment is one document. Whoever put it there may run
// suites; everybody else keeps away, since two runs would drop each other's
// collections and meet each other's fail points. All times in it are the
// server's ($$NOW), so that no clock of a client matters.
const (
	Database   = "utr"
	Collection = "lock"
	lockID     = "run"
)

// The times of a lock. A run that ended without a word is over once its lease
// is.
const (
	DefaultLease = time.Minute
	RenewEvery   = 5 * time.Second
	lockTry      = 10 * time.Second // bounds one attempt to get, renew or remove it
	lockPoll     = time.Second      // between looks, while somebody waits for it
)

// Options say how a run takes the lock of a deployment. The zero value
// will do.
type Options struct {
	// Name is what the run calls itself, for others to read, such as the URL
	// of a CI job; "" leaves it out. Never put a secret here.
	Name string
	// Wait is how long to wait for another run to end; 0 refuses at once.
	Wait time.Duration
	// Lease is how long the lock holds without being renewed; 0 means
	// DefaultLease.
	Lease time.Duration
	// Lost is called once, from another goroutine, if the lock is lost before
	// it is released: the run has to end. Nil drops it.
	Lost func(error)
	// Note gets what is worth knowing, a line at a time: that a stale
	// lock was taken over, that there can be none. Nil drops it.
	Note func(string)
}

// Lock is a lock that is held. Its methods may be called concurrently.
type Lock struct {
	store Store
	hosts []string
	o     Options
	me    Holder

	stop    context.CancelFunc
	beating sync.WaitGroup

	mu      sync.Mutex // one renewal at a time
	renewed time.Time  // when the last renewal that succeeded was sent; monotonic
	tried   time.Time
	over    bool // released or lost
}

// Acquire takes the lock of a deployment, and closes the store if that fails.
// Release it. The error is a *HeldError if another run has it. ctx bounds all of
// it, Options.Wait included.
func Acquire(ctx context.Context, store Store, hosts []string, o Options) (_ *Lock, err error) {
	defer func() {
		if err != nil {
			store.Close()
		}
	}()
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	if o.Note == nil {
		o.Note = func(string) {}
	}
	self, err := ledger.Self()
	if err != nil {
		return nil, err
	}
	l := &Lock{store: store, hosts: hosts, o: o, me: Holder{
		Run: rand.Text(), Host: self.Machine, PID: self.PID, Place: self.Place, Began: self.Started, Name: o.Name}}
	if err := l.get(ctx); err != nil {
		l.withdraw(ctx, err)
		return nil, err
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.beating.Go(func() { l.beat(ctx) })
	return l, nil
}

// withdraw removes the document of an attempt that failed and may have left one:
// it was interrupted, or no majority took it.
func (l *Lock) withdraw(ctx context.Context, why error) {
	if held := new(HeldError); errors.As(why, &held) || wire.CodeOf(why) == codeUnauthorized {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	_ = l.store.Remove(ctx, l.me.Run) // otherwise it is stale after its lease
}

// get takes the lock, or waits for it as long as was asked for.
func (l *Lock) get(ctx context.Context) error {
	begun := time.Now()
	for told := false; ; told = true {
		holder, err := l.try(ctx)
		if holder == nil {
			return err
		}
		waited := time.Since(begun)
		if waited >= l.o.Wait {
			return &HeldError{Hosts: l.hosts, Holder: *holder, Waited: min(l.o.Wait, waited)}
		}
		if !told {
			l.o.Note(fmt.Sprintf("waiting up to %s for the deployment at %s, which is in use by %s", l.o.Wait, strings.Join(l.hosts, ","), holder))
		}
		select {
		case <-time.After(min(lockPoll, l.o.Wait-waited)):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the lock: %w", context.Cause(ctx))
		}
	}
}

// tries bounds how often something about the lock is done anew when it changes
// hands, or a server steps down, at that very moment.
const tries = 5

// try takes the lock once. The holder is who has it, nil if we do, or if that
// cannot be told.
func (l *Lock) try(ctx context.Context) (*Holder, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockTry, fmt.Errorf("the lock %s.%s was neither got nor refused within %s", Database, Collection, lockTry))
	defer cancel()
	failed := func(doing string, err error) error {
		return fmt.Errorf("%s the lock %s.%s: %w", doing, Database, Collection, err)
	}
	for range tries {
		holder, err := l.store.Read(ctx)
		if err != nil {
			return nil, failed("reading", err)
		}
		left := holder != nil && holder.Run != l.me.Run
		if left && !holder.Over() {
			return holder, nil
		}
		if left && !holder.Stale() {
			if err := l.store.Remove(ctx, holder.Run); err != nil {
				return nil, failed("removing", err)
			}
		}
		sent := time.Now()
		ok, err := l.store.Take(ctx, l.me, l.o.Lease)
		if err != nil {
			return nil, failed("taking", err)
		}
		if !ok {
			continue // somebody was faster
		}
		l.mu.Lock()
		l.renewed, l.tried = sent, sent
		l.mu.Unlock()
		if left {
			l.o.Note(fmt.Sprintf("took over the lock of the deployment at %s, which %s left behind", strings.Join(l.hosts, ","), holder))
		}
		return nil, nil
	}
	return nil, failed("taking", fmt.Errorf("it changed hands at each of %d tries", tries))
}

// Renew prolongs a lease that was not renewed for as long as that. Call it with
// RenewEvery between tests: a renewal in the middle of one could meet its fail
// points. ctx bounds it.
func (l *Lock) Renew(ctx context.Context, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.over || now.Sub(l.renewed) < age || now.Sub(l.tried) < min(age, RenewEvery) {
		return
	}
	l.tried = now
	ctx, cancel := context.WithTimeout(ctx, min(lockTry, l.o.Lease/4))
	defer cancel()
	ok, err := l.store.Renew(ctx, l.me.Run, l.o.Lease)
	if err == nil && !ok {
		ok, err = l.recover(ctx)
	}
	switch {
	case ok:
		l.renewed = now
	case err != nil && time.Since(l.renewed) >= l.o.Lease:
		l.lose(&LostError{Hosts: l.hosts, Err: fmt.Errorf("it could not be renewed for %s: %w", l.o.Lease, err)})
	}
}

// recover takes the lock again if its document has vanished, as it does when a
// test drops the database. Anybody else's means that it is lost.
func (l *Lock) recover(ctx context.Context) (bool, error) {
	ok, err := l.store.Take(ctx, l.me, l.o.Lease)
	if err != nil || ok {
		return ok, err
	}
	holder, err := l.store.Read(ctx)
	if err == nil && (holder == nil || holder.Run != l.me.Run) {
		l.lose(&LostError{Hosts: l.hosts, Holder: holder})
	}
	return false, err
}

// lose reports once that the lock is lost.
func (l *Lock) lose(err *LostError) {
	l.over = true
	if l.o.Lost != nil {
		go l.o.Lost(err)
	}
}

// beat renews the lease while a test takes so long that nobody calls Renew.
func (l *Lock) beat(ctx context.Context) {
	ticker := time.NewTicker(l.o.Lease / 30)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		l.mu.Lock()
		age := time.Since(l.renewed)
		l.mu.Unlock()
		if age < l.o.Lease/3 {
			continue
		}
		// Rather late than into a fail point of the test, but not too late.
		if age > l.o.Lease*2/3 || l.store.Quiet(ctx) {
			l.Renew(ctx, l.o.Lease/3)
		}
	}
}

// Release gives the lock up. It may be called more than once, and after the
// lock was lost. The error says that the document could not be removed, so that
// others have to wait for the end of the lease.
func (l *Lock) Release() error {
	l.stop()
	l.beating.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil {
		return nil
	}
	defer func() { l.store.Close(); l.store = nil }()
	if l.over {
		return nil
	}
	l.over = true
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if err := l.store.Remove(ctx, l.me.Run); err != nil {
		return fmt.Errorf("the lock of the deployment at %s could not be removed and holds for %s more: %w",
			strings.Join(l.hosts, ","), l.o.Lease, err)
	}
	return nil
}

// releaseLimit bounds the removal of a lock: whoever interrupts a run does not
// want to wait for a deployment that is gone.
const releaseLimit = 3 * time.Second

// Clear removes the lock of a deployment if it is stale, or if its run is known to
// be gone. It gives the holder, nil if there was none, and whether the lock was
// removed.
func Clear(ctx context.Context, store Store) (holder *Holder, removed bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockTry, fmt.Errorf("no answer about the lock %s.%s within %s", Database, Collection, lockTry))
	defer cancel()
	holder, err = store.Read(ctx)
	if err == nil && holder != nil && holder.Over() {
		err = store.Remove(ctx, holder.Run)
		return holder, err == nil, err
	}
	return holder, false, err
}
