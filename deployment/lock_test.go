package deployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// released ends a lock with the test.
func released(t *testing.T, l *Lock) *Lock {
	t.Helper()
	t.Cleanup(func() {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// locked takes the lock of a deployment.
func locked(t *testing.T, uri string, o LockOptions) *Lock {
	t.Helper()
	l, err := AcquireLock(testkit.Context(t), uri, o)
	testkit.Check(t, err)
	return released(t, l)
}

// isHeld gives the run that an error names.
func isHeld(t *testing.T, err error) *Holder {
	t.Helper()
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("it says: %v", err)
	}
	return &held.Holder
}

// storeOf is the lock of a deployment for somebody who looks.
func storeOf(t *testing.T, text string) lockStore {
	t.Helper()
	store, err := openLockStore(parsed(t, text))
	testkit.Check(t, err)
	t.Cleanup(store.close)
	return store
}

func holderOf(t *testing.T, uri string) *Holder {
	t.Helper()
	h, err := storeOf(t, uri).read(testkit.Context(t))
	testkit.Check(t, err)
	return h
}

// leave leaves the lock of another run; one with a negative lease is stale.
func leave(t *testing.T, uri string, lease time.Duration) {
	t.Helper()
	leaveOf(t, uri, lease, ledger.Run{})
}

// leaveOf is leave for a run of a known process.
func leaveOf(t *testing.T, uri string, lease time.Duration, run ledger.Run) {
	t.Helper()
	_, ok, err := storeOf(t, uri).take(testkit.Context(t),
		Holder{Run: "other", Host: "far", PID: 7, Place: run.Place, Began: run.Started, Name: "of last night"}, lease)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// Of many runs that start at the same moment exactly one gets the lock, be it free
// or stale; the others hear who has it. Nothing of it is left.
func TestOneOfManyWins(t *testing.T) {
	for _, r := range []struct {
		reason string
		o      embedded.Options
	}{
		{"no majority but itself", embedded.Options{}},
		{"a replica set", embedded.Options{Topology: embedded.ReplicaSet}},
		{"two mongoses", embedded.Options{Topology: embedded.Sharded}},
		{"behind a load balancer", embedded.Options{Topology: embedded.LoadBalanced}},
		{"the oldest server", embedded.Options{Topology: embedded.ReplicaSet, Version: "4.2"}},
		{"with access control", embedded.Options{Topology: embedded.ReplicaSet, Users: users}},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			uri := serve(t, r.o).URI()
			self, err := ledger.Self()
			testkit.Check(t, err)
			for _, stale := range []bool{false, true} {
				if stale {
					leave(t, uri, -time.Minute)
				}
				var heard notes
				var all sync.WaitGroup
				var won atomic.Pointer[Lock]
				start := make(chan struct{})
				for range 8 {
					all.Go(func() {
						<-start
						l, err := AcquireLock(testkit.Context(t), uri, LockOptions{Name: "job $17", Note: heard.add})
						if err == nil {
							if other := won.Swap(l); other != nil {
								t.Error("two have the lock", other.Release())
							}
							return
						}
						var held *HeldError
						if !errors.As(err, &held) || held.Holder.Place != self.Place || held.Holder.Began != self.Started || held.Holder.Stale() {
							t.Errorf("the loser has %+v: %v", held, err)
						}
						testkit.Fails(t, err, "on host "+self.Machine, fmt.Sprint("process ", self.PID), "(job $17)",
							"since 2", "last seen ", "--wait-for-lock", "utr clean --uri")
					})
				}
				close(start)
				all.Wait()
				l := won.Load()
				if l == nil {
					t.Fatal("nobody has the lock")
				}
				h := holderOf(t, uri)
				if h == nil || h.Run != l.me.Run || h.Expires.Sub(h.Renewed) != DefaultLease {
					t.Fatalf("the document is %+v", h)
				}
				testkit.Says(t, fmt.Sprintf("%+v", h))
				testkit.Equal(t, "a lock is taken over", strings.Count(heard.String(), "took over the lock"), map[bool]int{true: 1}[stale])
				if stale {
					testkit.Says(t, heard.String(), "host far, process 7 (of last night)")
				}
				testkit.Check(t, errors.Join(l.Release(), l.Release())) // twice does no harm
				if h := holderOf(t, uri); h != nil {
					t.Errorf("the lock is left: %+v", h)
				}
			}
		})
	}
}

// The lock of a run that is known to be gone is taken, or removed, at once; no
// other is before it is stale.
func TestLockOfARunThatIsGone(t *testing.T) {
	uri := serve(t, embedded.Options{Topology: embedded.ReplicaSet}).URI()
	gone, err := ledger.Self()
	testkit.Check(t, err)
	gone.Started = "long ago"
	elsewhere := gone
	elsewhere.Place += "0" // a container with the same name
	clean := func(reason string, there, removed bool) {
		t.Helper()
		h, was, err := ClearLock(testkit.Context(t), Target{URI: uri})
		if (h != nil) != there || was != removed || err != nil || (holderOf(t, uri) != nil) != (there && !removed) {
			t.Errorf("%s: there %+v, removed %t, %v", reason, h, was, err)
		}
	}
	clean("nobody has it", false, false)
	leave(t, uri, -time.Minute)
	clean("it is stale", true, true)
	leaveOf(t, uri, time.Hour, elsewhere)
	clean("nobody can tell about the run", true, false)
	_, err = AcquireLock(testkit.Context(t), uri, LockOptions{})
	testkit.Equal(t, "the holder", isHeld(t, err).Run, "other")
	testkit.Check(t, storeOf(t, uri).remove(testkit.Context(t), "other"))
	leaveOf(t, uri, time.Hour, gone)
	clean("the run is gone", true, true)
	leaveOf(t, uri, time.Hour, gone)
	var heard notes
	l := locked(t, uri, LockOptions{Note: heard.add})
	testkit.Equal(t, "the holder", holderOf(t, uri).Run, l.me.Run)
	testkit.Says(t, heard.String(), "from a run on host far, process 7 (of last night)", "which is gone")
	_, _, err = ClearLock(testkit.Context(t), Target{URI: "mongodb://u:" + testkit.Secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=50"})
	testkit.Fails(t, err, "nothing listens there")
}

// What another run has taken in the middle of a run is lost; what a test has
// dropped, and what an election has interrupted, is put back.
func TestLockInTheMiddle(t *testing.T) {
	for _, r := range []struct {
		reason string
		happen func(*testing.T, *embedded.Deployment, lockStore, string)
		lost   bool
	}{
		{"nothing", func(*testing.T, *embedded.Deployment, lockStore, string) {}, false},
		{"a test drops the database", func(t *testing.T, d *embedded.Deployment, _ lockStore, _ string) {
			testkit.Check(t, client(t, parsed(t, d.URI()), func(c *mongo.Client) error { return c.Database(LockDatabase).Drop(testkit.Context(t)) }))
		}, false},
		{"an election", func(t *testing.T, d *embedded.Deployment, _ lockStore, _ string) { testkit.Check(t, d.StepDown()) }, false},
		{"another run has taken it", func(t *testing.T, d *embedded.Deployment, store lockStore, run string) {
			testkit.Check(t, store.remove(testkit.Context(t), run))
			leave(t, d.URI(), time.Hour)
		}, true},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serve(t, embedded.Options{Topology: embedded.ReplicaSet})
			lost := make(chan error, 10)
			l := locked(t, d.URI(), LockOptions{Lost: func(err error) { lost <- err }})
			before := holderOf(t, d.URI())
			r.happen(t, d, l.store, l.me.Run)
			l.renew(testkit.Context(t), 0)
			after := holderOf(t, d.URI())
			if !r.lost {
				if after == nil || after.Run != l.me.Run || after.Expires.Before(before.Expires) {
					t.Errorf("the lock is %+v, it was %+v", after, before)
				}
				testkit.Check(t, d.StepDown())
				testkit.Check(t, l.Release())
				if h := holderOf(t, d.URI()); h != nil || len(lost) > 0 {
					t.Errorf("the lock is left: %+v, lost %d times", h, len(lost))
				}
				return
			}
			testkit.Fails(t, testkit.Receive(t, "the loss", lost), "was lost: a run on host far, process 7")
			testkit.Check(t, l.Release())
			if h := holderOf(t, d.URI()); h == nil || h.Run != "other" {
				t.Errorf("the other's lock was removed: %+v", h)
			}
		})
	}
}

// A renewal in the middle of a test waits for a moment without a fail point.
func TestQuiet(t *testing.T) {
	d := serve(t, embedded.Options{})
	for mode, want := range map[string]bool{"alwaysOn": false, "off": true} {
		arm(t, d.URI(), mode, "find")
		testkit.Equal(t, mode, storeOf(t, d.URI()).quiet(testkit.Context(t)), want)
	}
}

// scripted is a lockStore that answers what a test needs.
type scripted struct {
	begun   time.Time
	holder  *Holder       // who has it
	until   time.Duration // since begun; then it is free
	renewal error
	loud    bool // a fail point of a test is on
	removed bool

	mu      sync.Mutex
	renewed []time.Duration // since begun
}

func (s *scripted) take(context.Context, Holder, time.Duration) (*Holder, bool, error) {
	return nil, time.Since(s.begun) >= s.until, nil
}

func (s *scripted) renew(context.Context, string, time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed = append(s.renewed, time.Since(s.begun))
	return s.renewal == nil, s.renewal
}

func (s *scripted) remove(ctx context.Context, _ string) error {
	s.removed = ctx.Err() == nil
	return nil
}

func (s *scripted) read(context.Context) (*Holder, error) { return s.holder, nil }
func (s *scripted) quiet(context.Context) bool            { return !s.loud }
func (s *scripted) close()                                {}

// A run that waits hears what for, and gets the lock soon after it has become free;
// the wait ends with its time, and with the run's.
func TestWaitForLock(t *testing.T) {
	for _, r := range []struct {
		reason      string
		until, wait time.Duration
		interrupted bool
		took        time.Duration
		err         string
	}{
		{"it becomes free", 2500 * time.Millisecond, time.Minute, false, 3 * time.Second, ""},
		{"it stays taken", time.Hour, 2500 * time.Millisecond, false, 2500 * time.Millisecond, "(waited for 2.5s)"},
		{"the run is interrupted", time.Hour, time.Minute, true, 0, "waiting for the lock: Ctrl-C"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{begun: time.Now(), until: r.until, holder: &Holder{Run: "other", Expires: time.Now().Add(time.Hour), Now: time.Now()}}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var heard notes
				l, err := acquire(ctx, s, []string{"h:1"}, LockOptions{Wait: r.wait, Note: func(line string) {
					heard.add(line)
					if r.interrupted {
						cancel(errors.New("Ctrl-C"))
					}
				}})
				if r.err != "" {
					testkit.Fails(t, err, r.err)
				} else {
					testkit.Check(t, err)
					released(t, l)
				}
				testkit.Equal(t, "it took", time.Since(s.begun), r.took)
				testkit.Says(t, heard.String(), "waiting up to "+r.wait.String()+" for the deployment at h:1")
				testkit.Equal(t, "lines", len(heard.lines), 1)
				testkit.Equal(t, "what may have been written is removed", s.removed, r.interrupted)
			})
		})
	}
}

// While a long test runs the lease is renewed all the same, though late if its
// fail points are on: rather a disturbed test than two runs. A lease that nobody can
// renew is lost when it is over, and not before.
func TestLease(t *testing.T) {
	for _, r := range []struct {
		reason  string
		s       *scripted
		between int // tests in the first minute, each of which ends with a renewal
		first   time.Duration
		most    int // renewals in 90 s
		lost    time.Duration
	}{
		{"a long test", &scripted{}, 0, 20 * time.Second, 4, 0},
		{"one with fail points", &scripted{loud: true}, 0, 42 * time.Second, 2, 0},
		{"many short tests", &scripted{}, 6000, 5 * time.Second, 13, 0},
		{"no primary", &scripted{renewal: errors.New("no primary")}, 0, 20 * time.Second, 10, 62 * time.Second},
	} {
		t.Run(r.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := r.s
				s.begun = time.Now()
				var lost time.Duration
				l, err := acquire(t.Context(), s, []string{"h:1"}, LockOptions{Lost: func(err error) {
					lost = time.Since(s.begun)
					testkit.Fails(t, err, "could not be renewed for 1m0s: no primary")
					if !errors.Is(err, s.renewal) {
						t.Errorf("the cause is lost: %v", err)
					}
				}})
				testkit.Check(t, err)
				released(t, l)
				for range r.between {
					time.Sleep(10 * time.Millisecond)
					l.Renew(t.Context())
				}
				time.Sleep(90*time.Second - time.Since(s.begun))
				synctest.Wait()
				testkit.Equal(t, "lost after", lost, r.lost)
				if len(s.renewed) == 0 || s.renewed[0] != r.first || len(s.renewed) > r.most {
					t.Errorf("renewed at %v, want the first at %s, and %d at most", s.renewed, r.first, r.most)
				}
			})
		})
	}
}

// What the server refuses, or does not make safe, is not a lock: a user without
// the right runs without one and hears so, everything else is an error that
// leaves nothing behind.
func TestLockThatCannotBe(t *testing.T) {
	refuse := func(code int32) bson.E { return bson.E{Key: "errorCode", Value: code} }
	late := func(code int32) bson.E {
		return bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: code}, {Key: "errmsg", Value: "it was late"}}}
	}
	times := func(n int) bson.D { return bson.D{{Key: "times", Value: n}} }
	for _, r := range []struct {
		reason string
		mode   any
		fault  bson.E // of failCommand for the lock's commands
		note   string // people hear it, and the deployment can be used
		err    string
	}{
		{"the user may not", "alwaysOn", refuse(codeUnauthorized),
			"no lock keeps other runs away from the deployment at HOSTS: the user of the connection string may not write utr.lock", ""},
		{"it is read-only", "alwaysOn", refuse(20), "", "taking the lock utr.lock: "},
		{"no majority has it", "alwaysOn", late(64), "", "no majority has it: it was late"},
		{"the primary stepped down just then", times(1), late(189), "", ""},
		{"an election at each try", "alwaysOn", refuse(189), "", "taking the lock"},
		{"sessions are killed meanwhile", times(2), refuse(codeInterrupted), "", ""},
	} {
		t.Run(r.reason, func(t *testing.T) {
			t.Parallel()
			d := serve(t, embedded.Options{Topology: embedded.ReplicaSet, Users: users})
			arm(t, d.DirectURI(d.Primary()), r.mode, "findAndModify", bson.E{Key: "appName", Value: "utr lock"}, r.fault)
			var heard notes
			s, err := OpenCluster(testkit.Context(t), ClusterOptions{URI: d.URI(), Lock: &LockOptions{}, Note: heard.add})
			if r.err != "" {
				testkit.Fails(t, err, r.err)
			} else {
				testkit.Check(t, err)
				testkit.Check(t, s.Close())
			}
			testkit.Says(t, heard.String(), strings.ReplaceAll(r.note, "HOSTS", strings.Join(d.Hosts(), ",")))
			if h := holderOf(t, d.URI()); h != nil {
				t.Errorf("a lock is left: %+v", h)
			}
		})
	}
}
