package enginekit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// logOf returns a log with one event per letter: its address.
func logOf(addresses string) *EventLog {
	l := NewEventLog(noon)
	for _, a := range addresses {
		l.Add(result.Event{Type: result.PoolCleared, Address: string(a)})
	}
	return l
}

func TestEventLogAfter(t *testing.T) {
	l := logOf("abc")
	for after, want := range map[int64]string{
		0:  "a1b2c3",
		-5: "a1b2c3",
		2:  "c3",
		3:  "",
		9:  "", // in the future
	} {
		got, err := l.After(t.Context(), after, 0)
		testkit.Check(t, err)
		text := ""
		for _, e := range got {
			text += fmt.Sprint(e.Address, e.Sequence)
			testkit.Equal(t, "time", e.Time, noon())
		}
		testkit.Equal(t, fmt.Sprint("after ", after), text, want)
	}
	got, _ := l.After(t.Context(), 0, 0)
	got[0].Address = "changed"
	got, _ = l.After(t.Context(), 0, 0)
	testkit.Equal(t, "After returns a copy", got[0].Address, "a")
}

func TestEventLogWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logOf("")
		began := time.Now()
		if got, err := l.After(t.Context(), 0, time.Minute); len(got) != 0 || err != nil || time.Since(began) != time.Minute {
			t.Errorf("no event in time: got %v, %v after %s", got, err, time.Since(began))
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.After(canceled, 0, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("the context is canceled: %v", err)
		}
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				if got, err := l.After(t.Context(), 0, time.Hour); len(got) != 1 || err != nil || time.Since(began) != time.Minute {
					t.Errorf("an event is added: got %v, %v after %s", got, err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		l.Add(result.Event{})
		readers.Wait()
	})
}

func TestEventLogReset(t *testing.T) {
	l := logOf("aa")
	l.Reset()
	l.Add(result.Event{})
	got, _ := l.After(t.Context(), 0, 0)
	testkit.Equal(t, "events after Reset, and the first sequence number", []any{len(got), got[0].Sequence}, []any{1, int64(1)})
}
