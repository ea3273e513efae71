package deployment

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// Of several runs that start at the same moment, exactly one acquires the lock, whether it is free or stale. The others
// report the holder. Release removes the document.
func TestOneOfManyWins(t *testing.T) {
	for _, words := range []string{"single", "replicaset", "sharded", "load-balanced", "replicaset 4.2"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, words)
			self, err := ledger.Self()
			testkit.Check(t, err)
			for _, stale := range []bool{false, true} {
				if stale {
					s.play("leave -1m")
				}
				var messages notes
				var all sync.WaitGroup
				var won atomic.Pointer[lock.Lock]
				start := make(chan struct{})
				for range 8 {
					all.Go(func() {
						<-start
						l, err := acquired(t, s.d.URI(), lock.Options{Name: "job $17", Note: messages.add})
						if err == nil {
							if other := won.Swap(l); other != nil {
								t.Error("two runs have the lock", other.Release())
							}
							return
						}
						h := heldBy(t, err)
						testkit.Equal(t, "the holder", []any{h.Place, h.Began, h.Stale()}, []any{self.Place, self.Started, false})
						testkit.ErrorContains(t, err, "on host "+self.Machine, fmt.Sprint("process ", self.PID), "(job $17)",
							"since 2", "last seen ", "--wait-for-lock", "utr clean --uri")
					})
				}
				close(start)
				all.Wait()
				l := won.Load()
				if l == nil {
					t.Fatal("no run has the lock")
				}
				h := s.holder()
				testkit.Equal(t, "run and lease", []any{h.Run, h.Expires.Sub(h.Renewed)}, []any{s.holder().Run, lock.DefaultLease})
				testkit.Contains(t, fmt.Sprintf("%+v", h))
				testkit.Equal(t, "a lock is taken over", strings.Count(messages.String(), "took over the lock"),
					testkit.Either(stale, 1, 0))
				if stale {
					testkit.Contains(t, messages.String(), "host far, process 7 (of last night)")
				}
				testkit.Check(t, errors.Join(l.Release(), l.Release()))
				s.is("nobody", s.holder())
			}
		})
	}
}
