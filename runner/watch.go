package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A driver waits for a server for 30 seconds by default, and each step of a clean-up waits again. So the runner itself
// asks the servers during a test, and ends the test and its clean-up when none of them has answered for a while.
const (
	askEvery = 2 * time.Second // also the limit for an answer
	mostAsks = 3               // without any answer: more than a restart or a pause of this process explains
)

// silentError is why a test ends whose servers no longer answer.
type silentError struct{ why error }

func (e *silentError) Error() string { return e.why.Error() }
func (e *silentError) Unwrap() error { return e.why }

// watch returns a context that ends with ctx, or with a *silentError when no server answers. end stops watching.
func (s *site) watch(ctx context.Context) (watched context.Context, end func()) {
	watched, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(askEvery)
		defer ticker.Stop()
		for unanswered := 0; ; {
			select {
			case <-ticker.C:
			case <-watched.Done():
				return
			}
			answers, err := s.ask(watched)
			if unanswered++; answers > 0 || err == nil {
				unanswered = 0
			} else if unanswered == mostAsks {
				cancel(&silentError{err})
			}
		}
	})
	return watched, func() { cancel(context.Canceled); watching.Wait() }
}

// ask asks all servers. It returns how many answer, and why each other one does not.
func (s *site) ask(ctx context.Context) (answers int, silent error) {
	ctx, cancel := limited(ctx, askEvery, "the limit for an answer")
	defer cancel()
	errs := make([]error, len(s.about.Hosts))
	var asking sync.WaitGroup
	for i, host := range s.about.Hosts {
		asking.Go(func() { errs[i] = s.commands.answers(ctx, host) })
	}
	asking.Wait()
	var why []string
	for i, err := range errs {
		if err == nil {
			answers++
		} else {
			why = append(why, fmt.Sprintf("%s: %s", s.about.Hosts[i], err))
		}
	}
	if len(why) > 0 {
		silent = errors.New(strings.Join(why, "; "))
	}
	return answers, silent
}

// othersAnswer reports whether some mongoses of a cluster do not answer and others do, with which the run continues.
func (s *site) othersAnswer(ctx context.Context) bool {
	if !s.sharded() {
		return false
	}
	answers, silent := s.ask(ctx)
	return answers > 0 && silent != nil
}

// lostDuring returns the *silentError that ended a context, or nil.
func lostDuring(ctx context.Context) error {
	if silent := new(silentError); errors.As(context.Cause(ctx), &silent) {
		return silent
	}
	return nil
}
