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

// tale says what happens to a source, in steps that end with a semicolon: a verb, and what it is about. A deployment
// keeps its name as long as it is the same one, and another one has another name: a, b, or c/1 of offer 1.
type tale struct {
	testing.TB
	Source
	heard   notes
	count   func() []int                  // what "has" compares
	verbs   map[string]func(about string) // more of them
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	known   map[string]Deployment
	waiting chan any // gets a deployment, or an error
}

func newTale(t testing.TB) *tale {
	s := &tale{TB: t, began: time.Now(), known: make(map[string]Deployment), waiting: make(chan any, 1)}
	s.ctx, s.cancel = context.WithCancelCause(t.Context())
	t.Cleanup(func() { s.cancel(nil) })
	return s
}

// the gives a deployment that the tale has named.
func (s *tale) the(name string) Deployment {
	s.Helper()
	if s.known[name] == nil {
		s.Fatalf("nobody knows %q", name)
	}
	return s.known[name]
}

// meet compares a deployment with the one of its name, and with all others.
func (s *tale) meet(step, name string, got any) {
	s.Helper()
	d, ok := got.(Deployment)
	if !ok {
		s.Fatalf("%s: %v", step, got)
	}
	for other, known := range s.known {
		if (other == name) != (known == d) {
			s.Errorf("%s: it is the one that %s names: %t", step, other, known == d)
		}
	}
	s.known[name] = d
}

func (s *tale) tell(steps string) {
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
			s.meet(step, about, d)
		case "refuse": // the offer, and the error
			offer, _ := strconv.Atoi(word)
			_, err := s.Acquire(s.ctx, offer)
			testkit.Fails(s, err, rest)
		case "wait": // as lend does, in the background
			go func() {
				d, err := s.Acquire(s.ctx, 0)
				if err != nil {
					s.waiting <- err
					return
				}
				s.waiting <- d
			}()
		case "get": // what was waited for
			s.meet(step, about, <-s.waiting)
		case "fail": // to get what was waited for
			err, _ := (<-s.waiting).(error)
			testkit.Fails(s, err, about)
		case "interrupt":
			s.cancel(errors.New("interrupted"))
		case "return", "break":
			s.Release(s.the(about), verb == "break")
		case "ours", "theirs":
			testkit.Equal(s, step, s.the(about).Owned(), verb == "ours")
		case "use": // each connection string
			usable(s, "", s.the(about))
		case "has":
			testkit.Equal(s, step, strings.Trim(fmt.Sprint(s.count()), "[]"), about)
		case "took":
			testkit.Equal(s, step, time.Since(s.began), about)
		case "hear":
			testkit.Says(s, s.heard.String(), about)
		case "quiet":
			testkit.Equal(s, "people hear", s.heard.String(), "")
		case "close":
			if err := s.Close(); about != "" {
				testkit.Fails(s, err, about)
			} else {
				testkit.Check(s, err)
			}
		default:
			s.Fatalf("%q is not a step", step)
		}
	}
}

// puppets make clusters without servers. In a synctest bubble whoever waits for
// what never comes ends the test.
type puppets struct {
	made, mended, closed atomic.Int32
	fails                bool          // no cluster comes up
	hold                 chan struct{} // if not nil, a making waits for its end
	hurt, stuck          error         // what mending and taking down give
	hang                 bool          // mending takes until nobody waits for it
	slow                 time.Duration // what taking down takes
}

func (p *puppets) mend(ctx context.Context) error {
	p.mended.Add(1)
	if p.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return p.hurt
}

func (p *puppets) close(ctx context.Context) error {
	p.closed.Add(1)
	select {
	case <-time.After(p.slow):
		return p.stuck
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *puppets) make(ctx context.Context) (*cluster, error) {
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
	return &cluster{right: p.mend, cleanUp: cleanUps{p.close}}, nil
}

// tale begins one of a pool of so many slots.
func (p *puppets) tale(t testing.TB, slots int) *tale {
	s := newTale(t)
	pool := newPool(s.heard.add)
	t.Cleanup(func() { _ = pool.Close() })
	for n := range slots {
		pool.add(Description{Name: "puppets"}, &poolSlot{name: fmt.Sprintf("slot %d", n), make: p.make})
	}
	s.Source = pool
	s.count = func() []int { return []int{int(p.made.Load()), int(p.mended.Load()), int(p.closed.Load())} }
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

// has counts clusters that were made, mended and taken down.
func TestPool(t *testing.T) {
	stories(t, "pool", func(t *testing.T, slots, steps string) {
		synctest.Test(t, func(t *testing.T) {
			new(puppets).tale(t, map[string]int{"one slot": 1, "two slots": 2, "three slots": 3}[slots]).tell(steps)
		})
	})
}

// Each cluster is lent to one worker at a time, and no more are made than there is room for.
func TestPoolLendsEachToOne(t *testing.T) {
	p := &puppets{}
	pool := p.tale(t, 3)
	var lent sync.Map
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 100 {
				d, err := pool.Acquire(testkit.Context(t), 0)
				if _, twice := lent.LoadOrStore(d, true); err != nil || twice {
					t.Error("one cluster was lent to two, or none:", err)
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
		t.Errorf("%d clusters were made, with room for 3, and %d taken down", made, p.closed.Load())
	}
}
