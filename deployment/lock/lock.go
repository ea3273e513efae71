// Package lock is for utr only. It keeps other runs away from a deployment that this run has not started.
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

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// The lock of a deployment is one document. Only the run that wrote it may run suites: concurrent runs would drop
// each other's collections and be affected by each other's fail points. All times in it are the server's, so that
// client clocks do not matter.
const (
	Database   = "utr"
	Collection = "lock"
	lockID     = "run"
)

const (
	DefaultLease = time.Minute
	RenewEvery   = 5 * time.Second
	lockTry      = 10 * time.Second // limit of one attempt to acquire or remove
	renewTry     = 5 * time.Second  // limit of one renewal, during which no test can begin
	lockPoll     = time.Second      // between attempts while waiting
)

// Options configures a lock. Package deployment sets Note; the zero value is valid otherwise.
type Options struct {
	// Name describes the run, such as the URL of a CI job. Other runs see it. It must not contain a secret.
	Name string
	// Wait is how long to wait for another run to end; 0 fails immediately.
	Wait time.Duration
	// Lease is how long the lock is valid after a renewal; 0 means DefaultLease.
	Lease time.Duration
	// Lost is called once, from another goroutine, if the lock is lost before Release: the run must stop. It may be
	// nil.
	Lost func(error)
	// Note receives messages, a line at a time, for example that a stale lock was taken over.
	Note func(string)
}

// Lock is a held lock. Its methods may be called concurrently.
type Lock struct {
	store Store
	hosts []string
	o     Options
	me    Holder

	stop    context.CancelFunc
	beating sync.WaitGroup

	mu      sync.Mutex // one renewal at a time
	renewed time.Time  // when the last successful renewal was sent; monotonic
	tried   time.Time
	over    bool // released or lost
}

// Acquire acquires the lock of a deployment. Release releases it and closes the store; after an error, Acquire has
// closed the store. The error is a *HeldError if another run holds the lock. ctx bounds everything, including
// Options.Wait.
func Acquire(ctx context.Context, store Store, hosts []string, o Options) (_ *Lock, err error) {
	defer func() {
		if err != nil {
			store.Close()
		}
	}()
	o.Lease = cmp.Or(o.Lease, DefaultLease)
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

// withdraw removes the document that an attempt may have written before it was interrupted, or was not acknowledged by
// a majority.
func (l *Lock) withdraw(ctx context.Context, why error) {
	if held := new(HeldError); errors.As(why, &held) || direct.CodeOf(why) == codes.Unauthorized {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	_ = l.store.Remove(ctx, l.me.Run) // otherwise the lease expires
}

// get acquires the lock, waiting up to Options.Wait.
func (l *Lock) get(ctx context.Context) error {
	begun := time.Now()
	for noted := false; ; noted = true {
		holder, err := l.try(ctx)
		if holder == nil {
			return err
		}
		waited := time.Since(begun)
		if waited >= l.o.Wait {
			return &HeldError{Hosts: l.hosts, Holder: *holder, Waited: min(l.o.Wait, waited)}
		}
		if !noted {
			l.o.Note(fmt.Sprintf("waiting up to %s for the deployment at %s: it is in use by %s", l.o.Wait,
				strings.Join(l.hosts, ","), holder))
		}
		select {
		case <-time.After(min(lockPoll, l.o.Wait-waited)):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the lock: %w", context.Cause(ctx))
		}
	}
}

// tries bounds retries, for example after the holder of the lock changed or a server stepped down.
const tries = 5

// try tries once to acquire the lock. It returns the other holder, or nil if we hold the lock or on an error.
func (l *Lock) try(ctx context.Context) (*Holder, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockTry,
		fmt.Errorf("the lock %s.%s was neither acquired nor refused within %s", Database, Collection, lockTry))
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
			continue // another run was faster
		}
		l.renewed, l.tried = sent, sent // without mu: beat does not run yet
		if left {
			l.o.Note(fmt.Sprintf("took over the lock of the deployment at %s from %s",
				strings.Join(l.hosts, ","), holder))
		}
		return nil, nil
	}
	return nil, failed("taking", fmt.Errorf("it changed hands at each of %d tries", tries))
}

// Renew extends a lease that was not renewed for the given time. Call it with RenewEvery between tests: during a test,
// its fail points could affect the renewal. ctx bounds it.
func (l *Lock) Renew(ctx context.Context, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.over || now.Sub(l.renewed) < age || now.Sub(l.tried) < min(age, RenewEvery) {
		return
	}
	l.tried = now
	ctx, cancel := context.WithTimeout(ctx, min(renewTry, l.o.Lease/4))
	defer cancel()
	ok, err := l.store.Renew(ctx, l.me.Run, l.o.Lease)
	if err == nil && !ok {
		ok, err = l.recover(ctx)
	}
	switch {
	case l.over:
	case err != nil && time.Since(l.renewed) >= l.o.Lease:
		l.lose(&LostError{Hosts: l.hosts, Err: fmt.Errorf("it could not be renewed for %s: %w", l.o.Lease, err)})
	case ok && now.Sub(l.renewed) >= l.o.Lease:
		l.lose(l.expired())
	case ok:
		l.renewed = now
	}
}

// recover takes the lock again if its document has disappeared, for example because a test dropped the database. If
// another run has taken it, or the lease has expired by the server's clock, the lock is lost.
func (l *Lock) recover(ctx context.Context) (bool, error) {
	holder, err := l.store.Read(ctx)
	if err == nil && holder == nil {
		var ok bool
		if ok, err = l.store.Take(ctx, l.me, l.o.Lease); err != nil || ok {
			return ok, err
		}
		holder, err = l.store.Read(ctx)
	}
	switch {
	case err != nil:
	case holder != nil && holder.Run == l.me.Run:
		l.lose(l.expired())
	default:
		l.lose(&LostError{Hosts: l.hosts, Holder: holder})
	}
	return false, err
}

// expired returns the error for a lock that no other run holds now. Another run may have held it meanwhile, for example
// during a pause of this process.
func (l *Lock) expired() *LostError {
	return &LostError{Hosts: l.hosts,
		Err: fmt.Errorf("it was not renewed for %s, so another run may have used the deployment", l.o.Lease)}
}

// lose reports that the lock is lost.
func (l *Lock) lose(err *LostError) {
	l.over = true
	if l.o.Lost != nil {
		go l.o.Lost(err)
	}
}

// beat renews the lease during long tests, when Renew is not called.
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
		// While the test has fail points on, wait, but not until the lease expires.
		if age > l.o.Lease*2/3 || l.store.Quiet(ctx) {
			l.Renew(ctx, l.o.Lease/3)
		}
	}
}

// Release releases the lock. It may be called more than once. It may be called after the lock was lost: it then removes
// the document unless another run took the lock. An error means that the document could not be removed. Other runs must
// then wait until the lease expires.
func (l *Lock) Release() error {
	l.stop()
	l.beating.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil {
		return nil
	}
	defer func() { l.store.Close(); l.store = nil }()
	lost := l.over // the document may be ours
	l.over = true
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if err := l.store.Remove(ctx, l.me.Run); err != nil && !lost {
		return fmt.Errorf("the lock of the deployment at %s could not be removed and expires in %s: %w",
			strings.Join(l.hosts, ","), l.o.Lease, err)
	}
	return nil
}

// releaseLimit bounds the removal of a lock, so that an interrupted run does not wait for an unreachable deployment.
const releaseLimit = 3 * time.Second

// ReleaseLimit bounds Release.
const ReleaseLimit = releaseLimit + closeLimit

// Clear removes the lock of a deployment if it is stale or its run has certainly ended. It returns the holder, or nil,
// and whether it removed the lock.
func Clear(ctx context.Context, store Store) (holder *Holder, removed bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockTry,
		fmt.Errorf("the lock %s.%s cannot be read or written within %s", Database, Collection, lockTry))
	defer cancel()
	holder, err = store.Read(ctx)
	if err == nil && holder != nil && holder.Over() {
		err = store.Remove(ctx, holder.Run)
		return holder, err == nil, err
	}
	return holder, false, err
}
