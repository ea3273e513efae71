package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/source"
)

func TestGuarded(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	release := make(chan struct{})
	defer close(release)

	v, err := guardedFor(context.Background(), time.Second, "a call", func(context.Context) int { return 7 })
	if v != 7 || err != nil {
		t.Errorf("a call that returns gives %d, %v", v, err)
	}
	v, err = guardedFor(over, time.Minute, "a call", func(ctx context.Context) int { <-ctx.Done(); return 7 })
	if v != 7 || err != nil {
		t.Errorf("a call that heeds the end gives %d, %v", v, err)
	}
	var stuck *StuckError
	if _, err = guardedFor(over, time.Millisecond, "a call", func(context.Context) int { <-release; return 7 }); !errors.As(err, &stuck) ||
		err.Error() != "a call did not return within 1ms after it was told to end" {
		t.Errorf("a call that does not return gives %v", err)
	}
	var panicked *PanicError
	_, err = guardedFor(context.Background(), time.Second, "a call", func(context.Context) int { panic("out of cheese") })
	if !errors.As(err, &panicked) || !strings.HasPrefix(err.Error(), "panic during a call: out of cheese\n") || !strings.Contains(panicked.Stack, "TestGuarded") {
		t.Errorf("a call that panics gives %v", err)
	}
}

func TestEnded(t *testing.T) {
	interrupted, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel2 := context.WithTimeoutCause(context.Background(), 0, &limitError{"the test's time limit", time.Second})
	defer cancel2()
	within, cancel3 := context.WithTimeoutCause(late, time.Hour, &limitError{"waitForEvent", time.Hour})
	defer cancel3()
	for _, row := range []struct {
		reason      string
		ctx         context.Context
		interrupted bool
		message     string
	}{
		{"nothing has ended", context.Background(), false, ""},
		{"an interruption is no failure", interrupted, true, ""},
		{"a time limit is one, and says what was waited for", late, false, "the test's time limit of 1s has passed while waiting for tea"},
		{"an outer limit is told from an inner one", within, false, "the test's time limit of 1s has passed while waiting for tea"},
	} {
		f := ended(row.ctx, "", source.Position{}, "tea")
		switch {
		case row.interrupted:
			if f == nil || !f.interrupted {
				t.Errorf("%s: %+v", row.reason, f)
			}
		case row.message == "":
			if f != nil {
				t.Errorf("%s: %+v", row.reason, f)
			}
		case f == nil || len(f.mismatches) != 1 || f.mismatches[0].Message != row.message:
			t.Errorf("%s: %+v", row.reason, f)
		}
	}
}

func TestUndated(t *testing.T) {
	limit := &limitError{"the test's time limit", time.Millisecond}
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Millisecond, limit)
	defer cancel()
	out := undated(ctx)
	if _, told := out.Deadline(); told {
		t.Error("the deadline of a test is told to the engine")
	}
	<-out.Done()
	if cause := context.Cause(out); cause != error(limit) {
		t.Errorf("the cause is %v", cause)
	}
}

// A clean-up has its own limit, and a shorter one as soon as somebody waits for
// the end of the run.
func TestCleaningUp(t *testing.T) {
	for _, row := range []struct {
		reason             string
		before, meanwhile  bool // when the run is interrupted
		limit, interrupted time.Duration
		cause              string
	}{
		{"no one interrupts", false, false, time.Millisecond, 0, "the limit of the clean-up of 1ms has passed"},
		{"interrupted before it", true, false, time.Hour, time.Millisecond, "the limit of the clean-up after an interruption of 1ms has passed"},
		{"interrupted meanwhile", false, true, time.Hour, time.Millisecond, "the limit of the clean-up after an interruption of 1ms has passed"},
		{"the first limit passes first", true, false, time.Millisecond, time.Hour, "the limit of the clean-up of 1ms has passed"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(context.Background())
			defer interrupt()
			if row.before {
				interrupt()
			}
			cleaning, done := cleaningUp(ctx, row.limit, row.interrupted)
			defer done()
			if row.limit == time.Hour && cleaning.Err() != nil {
				t.Error("it is over before it begins")
			}
			if row.meanwhile {
				interrupt()
			}
			select {
			case <-cleaning.Done():
			case <-time.After(time.Minute):
				t.Fatal("the clean-up has no end")
			}
			if cause := context.Cause(cleaning).Error(); cause != row.cause {
				t.Errorf("the cause is %q", cause)
			}
		})
	}
}
