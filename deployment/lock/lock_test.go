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

// scripted is a Store with programmed behavior that records calls with their times.
type scripted struct {
	begun   time.Time
	holder  *Holder       // who holds the lock
	until   time.Duration // since begun; then the lock is free
	renewal error
	absent  time.Duration // since begun; renewals fail until then, or always if 0
	loud    bool          // fail points of a test are on
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
	if s.absent > 0 && time.Since(s.begun) >= s.absent {
		return true, nil
	}
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

// TestLeases runs the steps of a transcript in virtual time. During a long test, the lease is renewed late if fail
// points are on. It is still renewed: a disturbed test is better than two concurrent runs.
func TestLeases(t *testing.T) {
	testkit.Transcript(t, "testdata/leases.txt", func(t *testing.T, input string) string {
		s := &scripted{}
		synctest.Test(t, func(t *testing.T) {
			s.begun = time.Now()
			s.holder = &Holder{Run: "other", Host: "far", PID: 7, Started: s.begun, Renewed: s.begun,
				Expires: s.begun.Add(time.Hour), Now: s.begun}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			o := Options{Note: s.say}
			o.Lost = func(err error) { s.say(fmt.Sprintf("lost: %v, wraps the cause: %t", err, errors.Is(err, s.renewal))) }
			var l *Lock
			for line := range strings.SplitSeq(input, "\n") {
				verb, about, _ := strings.Cut(line, " ")
				limit, _ := time.ParseDuration(about)
				switch verb {
				case "free": // after a time
					s.until = limit
				case "interrupt": // at the next note
					o.Note = func(line string) { s.say(line); cancel(errors.New(about)) }
				case "loud": // fail points of tests are on
					s.loud = true
				case "fails": // every renewal
					s.renewal = errors.New(about)
				case "until": // this time, every renewal fails
					s.absent = limit
				case "acquire": // with this wait
					o.Wait = limit
					var err error
					if l, err = Acquire(ctx, s, []string{"h:1"}, o); err != nil {
						s.say("error: " + err.Error())
						return
					}
					s.say("has the lock")
					defer func() { testkit.Check(t, l.Release()) }()
				case "tests": // of 10 ms, each followed by Renew
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
