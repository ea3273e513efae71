package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/source"
)

// A call into the engine that panics or does not come back harms no more than
// its test.
func TestGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		release := make(chan struct{})
		defer close(release)
		var stuck *StuckError
		var panicked *PanicError
		for _, r := range []struct {
			reason string
			ctx    context.Context
			call   func(context.Context) int
			want   any // 7, or a pointer for the error's type
			text   string
			took   time.Duration
		}{
			{"it returns", t.Context(), func(context.Context) int { return 7 }, nil, "", 0},
			{"it returns once its context has ended", over, func(ctx context.Context) int { time.Sleep(4 * time.Second); return 7 }, nil, "", 4 * time.Second},
			{"it does not return", over, func(context.Context) int { <-release; return 7 },
				&stuck, "a call did not return within 5s after it was told to end", 5 * time.Second},
			{"it panics", t.Context(), func(context.Context) int { panic("out of cheese") }, &panicked, "panic during a call: out of cheese\n", 0},
		} {
			began := time.Now()
			v, err := guarded(r.ctx, "a call", r.call)
			switch {
			case r.want == nil:
				if v != 7 || err != nil {
					t.Errorf("%s: %d, %v", r.reason, v, err)
				}
			case err == nil || !errors.As(err, r.want) || !strings.HasPrefix(err.Error(), r.text):
				t.Errorf("%s: %v", r.reason, err)
			}
			if took := time.Since(began); took != r.took {
				t.Errorf("%s: after %s", r.reason, took)
			}
		}
		if !strings.Contains(panicked.Stack, "TestGuarded") {
			t.Errorf("the stack of the panic lacks its origin: %s", panicked.Stack)
		}
	})
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
		{"an interruption is not a failure", interrupted, true, ""},
		{"a time limit is one, and says what was waited for", late, false, "the test's time limit of 1s has passed while waiting for tea"},
		{"an outer limit is not taken for an inner one", within, false, "the test's time limit of 1s has passed while waiting for tea"},
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

// The engine does not see the deadline of a test, which ends its context all
// the same.
func TestUndated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := &limitError{"the test's time limit", time.Hour}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, limit)
		defer cancel()
		out := undated(ctx)
		if _, dated := out.Deadline(); dated {
			t.Error("the engine sees the deadline of a test")
		}
		<-out.Done()
		if cause := context.Cause(out); cause != error(limit) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

// A clean-up has its own limit, and a shorter one as soon as somebody waits for
// the end of the run.
func TestCleaningUp(t *testing.T) {
	const own, after = "the limit of the clean-up of ", "the limit of the clean-up after an interruption of "
	for _, row := range []struct {
		reason      string
		interrupted time.Duration // when the run is, -1 for never
		limit, then time.Duration
		ends        time.Duration
		cause       string
	}{
		{"nobody interrupts", -1, 15 * time.Second, 3 * time.Second, 15 * time.Second, own + "15s has passed"},
		{"interrupted before it", 0, 15 * time.Second, 3 * time.Second, 3 * time.Second, after + "3s has passed"},
		{"interrupted meanwhile", time.Second, 15 * time.Second, 3 * time.Second, 4 * time.Second, after + "3s has passed"},
		{"the first limit passes first", time.Second, 2 * time.Second, 3 * time.Second, 2 * time.Second, own + "2s has passed"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				if row.interrupted == 0 {
					interrupt()
				} else if row.interrupted > 0 {
					time.AfterFunc(row.interrupted, interrupt)
				}
				began := time.Now()
				cleaning, done := cleaningUp(ctx, row.limit, row.then)
				defer done()
				<-cleaning.Done()
				if cause := context.Cause(cleaning).Error(); cause != row.cause || time.Since(began) != row.ends {
					t.Errorf("%q after %s", cause, time.Since(began))
				}
			})
		})
	}
}
