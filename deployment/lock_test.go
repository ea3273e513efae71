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
	for _, words := range []string{"single", "replicaset", "sharded", "load-balanced", "replicaset 4.2"} {
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

// scripted is a lockStore that does what a test needs, and remembers when.
type scripted struct {
	begun   time.Time
	holder  *Holder       // who has it
	until   time.Duration // since begun; then it is free
	renewal error
	loud    bool // a fail point of a test is on
	said    notes
}

func (s *scripted) say(what string) { s.said.add(fmt.Sprintf("%s: %s", time.Since(s.begun), what)) }

func (s *scripted) take(context.Context, Holder, time.Duration) (bool, error) { return true, nil }

func (s *scripted) renew(context.Context, string, time.Duration) (bool, error) {
	s.say("renewed")
	return s.renewal == nil, s.renewal
}

func (s *scripted) remove(ctx context.Context, _ string) error {
	if ctx.Err() == nil {
		s.say("removed")
	}
	return nil
}

func (s *scripted) read(context.Context) (*Holder, error) {
	if time.Since(s.begun) >= s.until {
		return nil, nil
	}
	return s.holder, nil
}
func (s *scripted) quiet(context.Context) bool { return !s.loud }
func (s *scripted) close()                     {}

// A lock on a store that does what a transcript says: a run that waits hears what for, and gets the lock soon after it
// has become free; its wait ends with its time, and with the run's. While a long test runs, the lease is renewed all
// the same, though late if its fail points are on: rather a disturbed test than two runs. A lease that nobody can
// renew is lost when it is over, and not before.
func TestLeases(t *testing.T) {
	testkit.Transcript(t, "testdata/leases.txt", func(t *testing.T, input string) string {
		s := &scripted{}
		synctest.Test(t, func(t *testing.T) {
			s.begun = time.Now()
			s.holder = &Holder{Run: "other", Host: "far", PID: 7, Started: s.begun, Renewed: s.begun, Expires: s.begun.Add(time.Hour), Now: s.begun}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			o := LockOptions{Note: s.say}
			o.Lost = func(err error) { s.say(fmt.Sprintf("lost: %v, because of that: %t", err, errors.Is(err, s.renewal))) }
			var l *Lock
			for line := range strings.SplitSeq(input, "\n") {
				verb, about, _ := strings.Cut(line, " ")
				limit, _ := time.ParseDuration(about)
				switch verb {
				case "free": // after a time
					s.until = limit
				case "interrupt": // as soon as it hears something
					o.Note = func(line string) { s.say(line); cancel(errors.New(about)) }
				case "loud": // fail points of tests are on
					s.loud = true
				case "fails": // each renewal
					s.renewal = errors.New(about)
				case "acquire": // and wait so long
					o.Wait = limit
					var err error
					if l, err = acquire(ctx, s, []string{"h:1"}, o); err != nil {
						s.say("error: " + err.Error())
						return
					}
					s.say("has the lock")
					defer func() { testkit.Check(t, l.Release()) }()
				case "tests": // of 10 ms, each of which ends with a renewal
					for range limit / (10 * time.Millisecond) {
						time.Sleep(10 * time.Millisecond)
						l.Renew(t.Context())
					}
				case "sleep":
					time.Sleep(limit)
					synctest.Wait()
					s.say("over")
				default:
					t.Fatalf("%q is not a step", line)
				}
			}
		})
		return s.said.String()
	})
}
