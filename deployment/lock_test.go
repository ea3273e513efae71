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

	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Of many runs that start at the same moment exactly one gets the lock, be it free
// or stale; the others hear who has it. Nothing of it is left.
func TestOneOfManyWins(t *testing.T) {
	for _, words := range []string{"single", "replicaset", "sharded", "load-balanced", "replicaset 4.2", "replicaset auth"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, words)
			self, err := ledger.Self()
			testkit.Check(t, err)
			for _, stale := range []bool{false, true} {
				if stale {
					s.tell("leave -1m")
				}
				var heard notes
				var all sync.WaitGroup
				var won atomic.Pointer[Lock]
				start := make(chan struct{})
				for range 8 {
					all.Go(func() {
						<-start
						l, err := AcquireLock(testkit.Context(t), s.d.URI(), LockOptions{Name: "job $17", Note: heard.add})
						if err == nil {
							if other := won.Swap(l); other != nil {
								t.Error("two have the lock", other.Release())
							}
							return
						}
						h := isHeld(t, err)
						testkit.Equal(t, "who has it", []any{h.Place, h.Began, h.Stale()}, []any{self.Place, self.Started, false})
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
				h := s.holder()
				testkit.Equal(t, "run and lease", []any{h.Run, h.Expires.Sub(h.Renewed)}, []any{l.me.Run, DefaultLease})
				testkit.Says(t, fmt.Sprintf("%+v", h))
				testkit.Equal(t, "a lock is taken over", strings.Count(heard.String(), "took over the lock"), map[bool]int{true: 1}[stale])
				if stale {
					testkit.Says(t, heard.String(), "host far, process 7 (of last night)")
				}
				testkit.Check(t, errors.Join(l.Release(), l.Release())) // twice does no harm
				s.is("nobody", s.holder())
			}
		})
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
					t.Cleanup(func() { testkit.Check(t, l.Release()) })
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
				defer func() { testkit.Check(t, l.Release()) }()
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
