package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a Store that does what a test needs, and remembers when.
type scripted struct {
	begun   time.Time
	holder  *Holder       // who has it
	until   time.Duration // since begun; then it is free
	renewal error
	loud    bool // a fail point of a test is on
	mu      sync.Mutex
	said    []string
}

func (s *scripted) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf("%s: %s", time.Since(s.begun), what))
}

func (s *scripted) Take(context.Context, Holder, time.Duration) (bool, error) { return true, nil }

func (s *scripted) Renew(context.Context, string, time.Duration) (bool, error) {
	s.say("renewed")
	return s.renewal == nil, s.renewal
}

func (s *scripted) Remove(ctx context.Context, _ string) error {
	if ctx.Err() == nil {
		s.say("removed")
	}
	return nil
}

func (s *scripted) Read(context.Context) (*Holder, error) {
	if time.Since(s.begun) >= s.until {
		return nil, nil
	}
	return s.holder, nil
}
func (s *scripted) Quiet(context.Context) bool { return !s.loud }
func (s *scripted) Close()                     {}

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
			o := Options{Note: s.say}
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
					if l, err = Acquire(ctx, s, []string{"h:1"}, o); err != nil {
						s.say("error: " + err.Error())
						return
					}
					s.say("has the lock")
					defer func() { testkit.Check(t, l.Release()) }()
				case "tests": // of 10 ms, each of which ends with a renewal
					for range limit / (10 * time.Millisecond) {
						time.Sleep(10 * time.Millisecond)
						l.Renew(t.Context(), RenewEvery)
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
		return strings.Join(s.said, "\n")
	})
}
