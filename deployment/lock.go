package deployment

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// The lock of a deployment is one document. Whoever put it there may run
// suites; everybody else keeps away, since two runs would drop each other's
// collections and meet each other's fail points. All times in it are the
// server's ($$NOW), so that no clock of a client matters.
const (
	LockDatabase   = "utr"
	LockCollection = "lock"
	lockID         = "run"
)

// The times of a lock. A run that ended without a word is over once its lease
// is.
const (
	DefaultLease = time.Minute
	renewEvery   = 5 * time.Second
	lockTry      = 10 * time.Second // bounds one attempt to get, renew or remove it
	lockPoll     = time.Second      // between looks, while somebody waits for it
)

// LockOptions say how a run takes the lock of a deployment. The zero value
// will do.
type LockOptions struct {
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
	// ServerAPI is the version of the Stable API that is declared; "" declares
	// none.
	ServerAPI string
	// Note tells people what is worth to know, a line at a time: that a stale
	// lock was taken over, that there can be none. Nil drops it.
	Note func(string)
}

// Holder is who holds a lock, as its document tells.
type Holder struct {
	// Run is a random name of the one run.
	Run string `bson:"run"`
	// Host and PID are where the run's process is.
	Host string `bson:"host"`
	PID  int    `bson:"pid"`
	// Place is where the process id means something, and Began when that process
	// started: see ledger.Run.
	Place string `bson:"place,omitempty"`
	Began string `bson:"began,omitempty"`
	// Name is what the run calls itself, "" if nothing.
	Name string `bson:"name,omitempty"`
	// Started, Renewed and Expires are the server's time, and Now is when it
	// was asked.
	Started time.Time `bson:"started"`
	Renewed time.Time `bson:"renewed"`
	Expires time.Time `bson:"expires"`
	Now     time.Time `bson:"now,omitempty"`
}

// Stale reports whether the lease is over: the run has ended, or cannot reach
// the deployment any more.
func (h *Holder) Stale() bool { return !h.Now.Before(h.Expires) }

// gone reports whether the run is known for sure to be no more, as it may be of
// a process of this machine: the end of its lease need not be waited for.
func (h *Holder) gone() bool {
	fate, err := ledger.Run{Place: h.Place, Process: ledger.Process{PID: h.PID, Started: h.Began}}.Fate()
	return err == nil && fate == ledger.Gone
}

// over reports whether the lock means nothing any more.
func (h *Holder) over() bool { return h.Stale() || h.gone() }

// String names a holder for people.
func (h *Holder) String() string {
	name := ""
	if h.Name != "" {
		name = fmt.Sprintf(" (%s)", h.Name)
	}
	return fmt.Sprintf("a run on host %s, process %d%s, since %s, last seen %s ago",
		h.Host, h.PID, name, h.Started.UTC().Format("2006-01-02 15:04:05 UTC"), h.Now.Sub(h.Renewed).Round(time.Second))
}

// HeldError tells that another run holds the lock.
type HeldError struct {
	Hosts  []string
	Holder Holder
	Waited time.Duration
}

// Error names the other run, and what can be done.
func (e *HeldError) Error() string {
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(" (waited for %s)", e.Waited)
	}
	return fmt.Sprintf("the deployment at %s is in use by %s%s\n"+
		"--wait-for-lock DURATION waits for its end; a lock that is not renewed is free in %s; if that run was killed, utr clean --uri on its machine removes its lock",
		strings.Join(e.Hosts, ","), &e.Holder, waited, max(0, e.Holder.Expires.Sub(e.Holder.Now)).Round(time.Second))
}

// LostError tells that a lock was lost in the middle of a run.
type LostError struct {
	Hosts []string
	// Holder is who has it now, nil if that is not known.
	Holder *Holder
	// Err is why it could not be renewed, nil if somebody took it.
	Err error
}

// Error tells what has become of the lock.
func (e *LostError) Error() string {
	what := fmt.Sprintf("the lock of the deployment at %s was lost: ", strings.Join(e.Hosts, ","))
	switch {
	case e.Holder != nil:
		return what + e.Holder.String() + " has it now"
	case e.Err != nil:
		return what + e.Err.Error()
	}
	return what + "it was removed"
}

// Unwrap gives why it could not be renewed.
func (e *LostError) Unwrap() error { return e.Err }

// Lock is a lock that is held. Its methods may be called concurrently.
type Lock struct {
	store lockStore
	hosts []string
	o     LockOptions
	me    Holder

	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex // one renewal at a time
	renewed time.Time  // when the last renewal that succeeded was sent; monotonic
	tried   time.Time
	over    bool // released or lost
}

// lockStore is the lock document of one deployment.
type lockStore interface {
	// take writes the document of a holder, and tells whether it did: not if
	// somebody else holds the lock.
	take(ctx context.Context, h Holder, lease time.Duration) (bool, error)
	// renew prolongs the lease of a run, and tells whether it still holds it.
	renew(ctx context.Context, run string, lease time.Duration) (bool, error)
	// read gives the holder, nil if there is none.
	read(ctx context.Context) (*Holder, error)
	// remove deletes the document of a run, if it is there.
	remove(ctx context.Context, run string) error
	// quiet reports whether a write now would meet no fail point of a test.
	quiet(ctx context.Context) bool
	close()
}

// AcquireLock takes the lock of the deployment of a connection string. Release
// it. The error is a *HeldError if another run has it. ctx bounds all of it,
// LockOptions.Wait included.
func AcquireLock(ctx context.Context, uri string, o LockOptions) (*Lock, error) {
	u, err := Target{uri, o.ServerAPI}.resolved(ctx)
	if err != nil {
		return nil, err
	}
	store, err := openLockStore(u)
	if err != nil {
		return nil, u.redact(ctx, err)
	}
	l, err := acquire(ctx, store, u.hosts, o)
	if err != nil {
		store.close()
		if held := new(HeldError); errors.As(err, &held) || isUnauthorized(err) {
			return nil, err
		}
		return nil, u.plain(ctx, err)
	}
	return l, nil
}

func acquire(ctx context.Context, store lockStore, hosts []string, o LockOptions) (*Lock, error) {
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
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.stopped = stop, make(chan struct{})
	go l.beat(beating)
	return l, nil
}

// withdraw removes the document of an attempt that failed and may have left one:
// it was interrupted, or no majority took it.
func (l *Lock) withdraw(ctx context.Context, why error) {
	if held := new(HeldError); errors.As(why, &held) || isUnauthorized(why) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	_ = l.store.remove(ctx, l.me.Run) // otherwise it is stale after its lease
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
	ctx, cancel := context.WithTimeoutCause(ctx, lockTry, fmt.Errorf("the lock %s.%s was neither got nor refused within %s", LockDatabase, LockCollection, lockTry))
	defer cancel()
	failed := func(doing string, err error) error {
		return fmt.Errorf("%s the lock %s.%s: %w", doing, LockDatabase, LockCollection, err)
	}
	for range tries {
		holder, err := l.store.read(ctx)
		if err != nil {
			return nil, failed("reading", err)
		}
		left := holder != nil && holder.Run != l.me.Run
		if left && !holder.over() {
			return holder, nil
		}
		if left && !holder.Stale() {
			if err := l.store.remove(ctx, holder.Run); err != nil {
				return nil, failed("removing", err)
			}
		}
		sent := time.Now()
		ok, err := l.store.take(ctx, l.me, l.o.Lease)
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

// Renew prolongs the lease if that was not done lately. Call it between tests:
// a renewal in the middle of one could meet its fail points. ctx bounds it.
func (l *Lock) Renew(ctx context.Context) { l.renew(ctx, renewEvery) }

// renew prolongs a lease that was not renewed for as long as that.
func (l *Lock) renew(ctx context.Context, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.over || now.Sub(l.renewed) < age || now.Sub(l.tried) < min(age, renewEvery) {
		return
	}
	l.tried = now
	ctx, cancel := context.WithTimeout(ctx, min(lockTry, l.o.Lease/4))
	defer cancel()
	ok, err := l.store.renew(ctx, l.me.Run, l.o.Lease)
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
	ok, err := l.store.take(ctx, l.me, l.o.Lease)
	if err != nil || ok {
		return ok, err
	}
	holder, err := l.store.read(ctx)
	if err == nil && (holder == nil || holder.Run != l.me.Run) {
		l.lose(&LostError{Hosts: l.hosts, Holder: holder})
	}
	return false, err
}

// lose tells once that the lock is lost.
func (l *Lock) lose(err *LostError) {
	l.over = true
	if l.o.Lost != nil {
		go l.o.Lost(err)
	}
}

// beat renews the lease while a test takes so long that nobody calls Renew.
func (l *Lock) beat(ctx context.Context) {
	defer close(l.stopped)
	ticker := time.NewTicker(l.o.Lease / 30)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		age := l.age()
		if age < l.o.Lease/3 {
			continue
		}
		// Rather late than into a fail point of the test, but not too late.
		if age > l.o.Lease*2/3 || l.store.quiet(ctx) {
			l.renew(ctx, l.o.Lease/3)
		}
	}
}

func (l *Lock) age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.renewed)
}

// Release gives the lock up. It may be called more than once, and after the
// lock was lost. The error says that the document could not be removed, so that
// others have to wait for the end of the lease.
func (l *Lock) Release() error {
	l.stop()
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil {
		return nil
	}
	defer func() { l.store.close(); l.store = nil }()
	if l.over {
		return nil
	}
	l.over = true
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if err := l.store.remove(ctx, l.me.Run); err != nil {
		return fmt.Errorf("the lock of the deployment at %s could not be removed and holds for %s more: %w",
			strings.Join(l.hosts, ","), l.o.Lease, err)
	}
	return nil
}

// releaseLimit bounds the removal of a lock: whoever interrupts a run does not
// want to wait for a deployment that is gone.
const releaseLimit = 3 * time.Second

// ClearLock removes the lock of a deployment if it is stale, or if its run is
// known to be gone. It gives the holder, nil if there was none, and whether the
// lock was removed.
func ClearLock(ctx context.Context, t Target) (holder *Holder, removed bool, err error) {
	u, err := t.resolved(ctx)
	if err == nil {
		err = u.redact(ctx, refused(ctx, u))
	}
	if err != nil {
		return nil, false, err
	}
	store, err := openLockStore(u)
	if err != nil {
		return nil, false, u.redact(ctx, err)
	}
	defer store.close()
	ctx, cancel := context.WithTimeoutCause(ctx, lockTry, fmt.Errorf("no answer about the lock %s.%s within %s", LockDatabase, LockCollection, lockTry))
	defer cancel()
	holder, err = store.read(ctx)
	if removed = err == nil && holder != nil && holder.over(); removed {
		err = store.remove(ctx, holder.Run)
	}
	return holder, removed && err == nil, u.plain(ctx, err)
}

// lockDocument is the lockStore of a deployment.
type lockDocument struct {
	client *mongo.Client
	run    func(ctx context.Context, database string, command bson.D) (bson.Raw, error)
}

func openLockStore(u uri) (lockStore, error) {
	client, err := mongo.Connect(u.client("utr lock").SetMinPoolSize(0).SetMaxPoolSize(2))
	if err != nil {
		return nil, err
	}
	return &lockDocument{client, func(ctx context.Context, database string, command bson.D) (reply bson.Raw, err error) {
		for range tries {
			if reply, err = onPrimary(ctx, client, database, command); !passes(ctx, err) {
				break
			}
		}
		return reply, err
	}}, nil
}

// passes tells errors that say nothing of the command itself, and after which
// it can be repeated: to do twice what is done about a lock is to do it once.
func passes(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	code := CodeOf(err)
	return Passing(err) || code == codeWriteConflict || code == codeInterrupted // the latter by killAllSessions of others
}

func (d *lockDocument) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = d.client.Disconnect(ctx) // the deployment may be gone
}

// minority is a write for which the wait for a majority has failed.
type minority struct{ cause mongo.WriteException }

func (m minority) Error() string { return "no majority has it: " + m.cause.WriteConcernError.Message }
func (m minority) Unwrap() error { return m.cause }

// onPrimary runs a command for the lock.
func onPrimary(ctx context.Context, client *mongo.Client, database string, command bson.D) (bson.Raw, error) {
	reply, err := client.Database(database).RunCommand(ctx, command, options.RunCmd().SetReadPreference(readpref.Primary())).Raw()
	if late := new(mongo.WriteException); errors.As(err, late) && late.WriteConcernError != nil {
		return nil, minority{*late}
	}
	return reply, err
}

// majority is the write concern of everything about a lock. A standalone takes
// it, too.
var majority = bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: (lockTry / 2).Milliseconds()}}}

// leased are the fields that a renewal sets, by the server's clock.
func leased(lease time.Duration) bson.D {
	return bson.D{
		{Key: "renewed", Value: "$$NOW"},
		{Key: "expires", Value: bson.D{{Key: "$add", Value: bson.A{"$$NOW", lease.Milliseconds()}}}},
	}
}

// modify changes the lock document where query finds it, by a pipeline, and
// gives it as it is then; nil if there is none.
func (d *lockDocument) modify(ctx context.Context, query, stage bson.D, upsert bool) (bson.Raw, error) {
	reply, err := d.run(ctx, LockDatabase, bson.D{
		{Key: "findAndModify", Value: LockCollection},
		{Key: "query", Value: query},
		{Key: "update", Value: bson.A{stage}},
		{Key: "upsert", Value: upsert},
		{Key: "new", Value: true},
		majority,
	})
	if err != nil {
		return nil, err
	}
	now, _ := reply.Lookup("value").DocumentOK()
	return now, nil
}

// take is one atomic step: the document stays as it is if somebody holds the
// lock, and tells by itself who has it then. (That the lock is free cannot stand
// in the query: an upsert takes no $expr.) Two that make the document at the same
// moment meet in its _id.
func (d *lockDocument) take(ctx context.Context, h Holder, lease time.Duration) (bool, error) {
	operator := func(name string, args ...any) bson.D { return bson.D{{Key: name, Value: bson.A(args)}} }
	literal := func(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }
	free := operator("$or",
		operator("$eq", "$run", literal(h.Run)),
		operator("$lte", operator("$ifNull", "$expires", time.Unix(0, 0)), "$$NOW"))
	mine := append(bson.D{
		{Key: "_id", Value: lockID},
		{Key: "run", Value: literal(h.Run)},
		{Key: "host", Value: literal(h.Host)},
		{Key: "pid", Value: literal(int64(h.PID))},
		{Key: "place", Value: literal(h.Place)},
		{Key: "began", Value: literal(h.Began)},
		{Key: "name", Value: literal(h.Name)},
		{Key: "started", Value: "$$NOW"},
	}, leased(lease)...)
	now, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}}, bson.D{{Key: "$replaceWith", Value: operator("$cond", free, mine, "$$ROOT")}}, true)
	if CodeOf(err) == codeDuplicateKey {
		return false, nil
	}
	return err == nil && text(now, "run") == h.Run, err
}

func (d *lockDocument) renew(ctx context.Context, run string, lease time.Duration) (bool, error) {
	now, err := d.modify(ctx, bson.D{{Key: "_id", Value: lockID}, {Key: "run", Value: run}}, bson.D{{Key: "$set", Value: leased(lease)}}, false)
	return now != nil, err
}

func (d *lockDocument) read(ctx context.Context) (*Holder, error) {
	reply, err := d.run(ctx, LockDatabase, bson.D{
		{Key: "aggregate", Value: LockCollection},
		{Key: "pipeline", Value: bson.A{
			bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: lockID}}}},
			bson.D{{Key: "$addFields", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
		}},
		{Key: "cursor", Value: bson.D{}},
	})
	if err != nil {
		return nil, err
	}
	found, ok := reply.Lookup("cursor", "firstBatch", "0").DocumentOK()
	if !ok {
		return nil, nil
	}
	var h Holder
	if err := bson.Unmarshal(found, &h); err != nil {
		return nil, fmt.Errorf("the document is none of a lock: %w", err)
	}
	return &h, nil
}

func (d *lockDocument) remove(ctx context.Context, run string) error {
	_, err := d.run(ctx, LockDatabase, bson.D{
		{Key: "delete", Value: LockCollection},
		{Key: "deletes", Value: bson.A{bson.D{
			{Key: "q", Value: bson.D{{Key: "_id", Value: lockID}, {Key: "run", Value: run}}}, {Key: "limit", Value: int32(1)},
		}}},
		majority,
	})
	return err
}

func (d *lockDocument) quiet(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reply, err := d.run(ctx, "admin", lookFor([]string{"failCommand"}))
	return err == nil && len(on("", reply)) == 0
}
