package deployment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// script runs steps on a source, separated by semicolons: a verb and its arguments. Each deployment has a name: a, b,
// or c/1 of offer 1. A new deployment has a new name.
type script struct {
	testing.TB
	Source
	notes   notes
	count   func() []int                  // what "has" compares
	verbs   map[string]func(about string) // additional verbs
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	known   map[string]Deployment
	waiting chan any // receives a deployment or an error
}

func newScript(t testing.TB) *script {
	s := &script{TB: t, began: time.Now(), known: make(map[string]Deployment), waiting: make(chan any, 1)}
	s.ctx, s.cancel = context.WithCancelCause(t.Context())
	t.Cleanup(func() { s.cancel(nil) })
	return s
}

// the returns the deployment with a name.
func (s *script) the(name string) Deployment {
	s.Helper()
	if s.known[name] == nil {
		s.Fatalf("unknown name %q", name)
	}
	return s.known[name]
}

// name gives a deployment its name, and checks that it has no other.
func (s *script) name(step, name string, got any) {
	s.Helper()
	d, ok := got.(Deployment)
	if !ok {
		s.Fatalf("%s: %v", step, got)
	}
	for other, known := range s.known {
		if (other == name) != (known == d) {
			s.Errorf("%s: it is %s: %t", step, other, known == d)
		}
	}
	s.known[name] = d
}

func (s *script) play(steps string) {
	s.Helper()
	for _, step := range strings.Split(steps, ";") {
		verb, about, _ := strings.Cut(strings.TrimSpace(step), " ")
		word, rest, _ := strings.Cut(about, " ")
		if do := s.verbs[verb]; do != nil {
			do(about)
			continue
		}
		switch verb {
		case "offers":
			var names []string
			for _, o := range s.Offers() {
				names = append(names, o.Name)
			}
			testkit.Equal(s, step, strings.Join(names, ", "), about)
		case "lend":
			_, number, _ := strings.Cut(about, "/")
			offer, _ := strconv.Atoi(number)
			d, err := s.Acquire(s.ctx, offer)
			testkit.Check(s, err)
			s.name(step, about, d)
		case "refuse": // the offer, and the error
			offer, _ := strconv.Atoi(word)
			_, err := s.Acquire(s.ctx, offer)
			testkit.ErrorContains(s, err, rest)
		case "wait": // lend in the background
			go func() {
				d, err := s.Acquire(s.ctx, 0)
				if err != nil {
					s.waiting <- err
					return
				}
				s.waiting <- d
			}()
		case "get": // the result of wait
			s.name(step, about, <-s.waiting)
		case "fail": // the error of wait
			err, _ := (<-s.waiting).(error)
			testkit.ErrorContains(s, err, about)
		case "interrupt":
			s.cancel(errors.New("interrupted"))
		case "return", "break":
			s.Release(s.the(about), verb == "break")
		case "ours", "theirs":
			testkit.Equal(s, step, s.the(about).Owned(), verb == "ours")
		case "use": // with each connection string
			usable(s, "", s.the(about))
		case "has":
			testkit.Equal(s, step, strings.Trim(fmt.Sprint(s.count()), "[]"), about)
		case "took":
			testkit.Equal(s, step, time.Since(s.began).String(), about)
		case "notes":
			testkit.Contains(s, s.notes.String(), about)
		case "quiet":
			testkit.Equal(s, "notes", s.notes.String(), "")
		case "close":
			if err := s.Close(); about != "" {
				testkit.ErrorContains(s, err, about)
			} else {
				testkit.Check(s, err)
			}
		default:
			s.Fatalf("%q is not a step", step)
		}
	}
}

// fakeClusters creates clusters without servers. In a synctest bubble, waiting for ever fails the test.
type fakeClusters struct {
	made, repaired, closed atomic.Int32
	fails                  bool          // creating fails
	hold                   chan struct{} // if not nil, creating waits until it is closed
	hurt, stuck            error         // errors of repairing and removing
	hang                   bool          // repairing never ends
	slow                   time.Duration // duration of removing
	views                  int           // of each cluster, in addition to itself
}

func (p *fakeClusters) repair(ctx context.Context) error {
	p.repaired.Add(1)
	if p.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return p.hurt
}

func (p *fakeClusters) close(ctx context.Context) error {
	p.closed.Add(1)
	select {
	case <-time.After(p.slow):
		return p.stuck
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *fakeClusters) make(ctx context.Context) (*cluster, error) {
	n := p.made.Add(1)
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if p.fails {
		return nil, fmt.Errorf("making %d failed", n)
	}
	c := &cluster{repair: p.repair, cleanUp: cleanUps{p.close}}
	for range p.views {
		c.others = append(c.others, &cluster{})
	}
	return c, nil
}

// script returns a script for a pool with a number of slots.
func (p *fakeClusters) script(t testing.TB, slots int) *script {
	s := newScript(t)
	pool := newPool(s.notes.add)
	t.Cleanup(func() { _ = pool.Close() })
	for n := range slots {
		pool.add(Description{Name: "fakes"}, &poolSlot{name: fmt.Sprintf("slot %d", n), make: p.make})
	}
	s.Source = pool
	s.count = func() []int { return []int{int(p.made.Load()), int(p.repaired.Load()), int(p.closed.Load())} }
	s.verbs = map[string]func(string){
		"settle": func(string) { synctest.Wait() },
		"cannot": func(string) { p.fails = true },
		"hang":   func(string) { p.hang = true },
		"hurt":   func(why string) { p.hurt = errors.New(why) },
		"stuck":  func(why string) { p.stuck = errors.New(why) },
		"slow":   func(d string) { p.slow, _ = time.ParseDuration(d) },
		"go":     func(string) { close(p.hold) },
		"hold": func(limit string) {
			p.hold = make(chan struct{})
			if d, err := time.ParseDuration(limit); err == nil {
				time.AfterFunc(d, func() { close(p.hold) })
			}
		},
	}
	return s
}

// The step "has" counts clusters created, repaired and removed.
func TestPool(t *testing.T) {
	stories(t, "pool", func(t *testing.T, slots, steps string) {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeClusters{views: map[string]int{"three views": 2}[slots]}
			p.script(t, map[string]int{"one slot": 1, "two slots": 2, "three slots": 3, "three views": 1}[slots]).play(steps)
		})
	})
}

// Each cluster is lent to one worker at a time, and no more are created than there are slots.
func TestPoolLendsEachToOne(t *testing.T) {
	p := &fakeClusters{}
	pool := p.script(t, 3)
	var lent sync.Map
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 100 {
				d, err := pool.Acquire(testkit.Context(t), 0)
				if _, twice := lent.LoadOrStore(d, true); err != nil || twice {
					t.Error("a cluster was lent twice, or:", err)
					return
				}
				lent.Delete(d)
				pool.Release(d, false)
			}
		})
	}
	workers.Wait()
	testkit.Check(t, pool.Close())
	if made := p.made.Load(); made > 3 || p.closed.Load() != made {
		t.Errorf("%d clusters were created in 3 slots, and %d removed", made, p.closed.Load())
	}
}
