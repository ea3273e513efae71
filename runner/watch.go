package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
)

// A driver waits for a server for 30 seconds by default, and each step of a clean-up waits again. The runner therefore
// sends commands to the servers during a test. It ends the test and its clean-up if no server has answered for a while,
// or none was primary. It looks for a primary only in long tests, since its command can trigger their fail points.
const (
	askEvery    = 2 * time.Second // also the limit for an answer
	mostAsks    = 3               // without any answer: longer than a restart, or a pause of this process
	quietAsks   = 1               // before the runner asks for a primary
	primaryAsks = 7               // without a primary: an election takes up to 12 s
)

// lostError is why a deployment can no longer be used.
type lostError struct {
	what string // one of the following
	why  string
}

const (
	stopped  = "stopped answering"
	headless = "has no primary"
)

func (e *lostError) Error() string { return fmt.Sprintf("the deployment %s: %s", e.what, e.why) }

// watch returns a context that ends with ctx, or with a *lostError when the deployment is lost. end stops watching.
func (s *site) watch(ctx context.Context) (watched context.Context, end func()) {
	watched, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(askEvery)
		defer ticker.Stop()
		for asked, failed := 0, 0; ; asked++ {
			select {
			case <-ticker.C:
			case <-watched.Done():
				return
			}
			why := s.unusable(s.ask(watched, answer))
			if why == nil && asked >= quietAsks && s.about.Topology == deployment.ReplicaSet {
				why = s.unusable(s.ask(watched, whoAreYou))
			}
			if failed++; why == nil {
				failed = 0
			} else if why.what == stopped && failed >= mostAsks || failed >= primaryAsks {
				cancel(why)
			}
		}
	})
	return watched, func() { cancel(context.Canceled); watching.Wait() }
}

// lost returns a *lostError if the deployment cannot be used. It waits for an election.
func (s *site) lost(ctx context.Context) error {
	question := whoAreYou
	if s.about.Topology == deployment.LoadBalanced { // it refuses the command without loadBalanced
		question = answer
	}
	for failed := 1; ; failed++ {
		why := s.unusable(s.ask(ctx, question))
		switch {
		case why == nil:
			return nil
		case why.what == stopped, failed >= primaryAsks, sleep(ctx, askEvery) != nil:
			return why
		}
	}
}

// othersAnswer reports whether some mongoses of a cluster do not answer and others do. The run continues with the
// others.
func (s *site) othersAnswer(ctx context.Context) bool {
	silent := 0
	for _, m := range s.ask(ctx, answer) {
		if m.err != nil {
			silent++
		}
	}
	return s.sharded() && silent > 0 && silent < len(s.about.Hosts)
}

// lostDuring returns the *lostError that ended a context, or nil.
func lostDuring(ctx context.Context) error {
	if lost := new(lostError); errors.As(context.Cause(ctx), &lost) {
		return lost
	}
	return nil
}
