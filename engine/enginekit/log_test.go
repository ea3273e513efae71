package enginekit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/result"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// logOf is a log of one event for each letter, its address.
func logOf(addresses string) *EventLog {
	l := NewEventLog(noon)
	for _, a := range addresses {
		l.Add(result.Event{Type: result.PoolCleared, Address: string(a)})
	}
	return l
}

func TestEventLogAfter(t *testing.T) {
	l := logOf("abc")
	for _, row := range []struct {
		reason string
		after  int64
		want   string
	}{
		{"all", 0, "abc"},
		{"a number that no event has", -5, "abc"},
		{"the rest", 2, "c"},
		{"nothing is left", 3, ""},
		{"a number that no event has yet", 9, ""},
	} {
		got, err := l.After(t.Context(), row.after, 0)
		text := ""
		for i, e := range got {
			text += e.Address
			if want := max(row.after, 0) + int64(i) + 1; e.Sequence != want || !e.Time.Equal(noon()) {
				t.Errorf("%s: event %s has number %d, want %d, and time %s", row.reason, e.Address, e.Sequence, want, e.Time)
			}
		}
		if err != nil || text != row.want {
			t.Errorf("%s: got %q, %v, want %q", row.reason, text, err, row.want)
		}
	}
	got, _ := l.After(t.Context(), 0, 0)
	got[0].Address = "changed"
	if again, _ := l.After(t.Context(), 0, 0); again[0].Address != "a" {
		t.Error("who reads the log writes in it")
	}
}

func TestEventLogWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logOf("")
		began := time.Now()
		if got, err := l.After(t.Context(), 0, time.Minute); len(got) != 0 || err != nil || time.Since(began) != time.Minute {
			t.Errorf("no event in time: got %v, %v after %s", got, err, time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.After(gone, 0, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("the context has ended: %v", err)
		}
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				if got, err := l.After(t.Context(), 0, time.Hour); len(got) != 1 || err != nil || time.Since(began) != time.Minute {
					t.Errorf("an event comes: got %v, %v after %s", got, err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		l.Add(result.Event{})
		readers.Wait()
	})
}

func TestEventLogLatest(t *testing.T) {
	l := logOf("abac")
	for _, row := range []struct {
		reason  string
		after   int64
		address string
		want    int64 // 0: none
	}{
		{"the last of two", 0, "a", 3},
		{"the only one", 0, "b", 2},
		{"it is not after itself", 3, "a", 0},
		{"just before it", 2, "a", 3},
		{"none", 0, "d", 0},
	} {
		got, found := l.Latest(row.after, func(e result.Event) bool { return e.Address == row.address })
		if got.Sequence != row.want || found != (row.want > 0) {
			t.Errorf("%s: got number %d, %t, want %d", row.reason, got.Sequence, found, row.want)
		}
	}
	if none := logOf(""); none.Last() != 0 || l.Last() != 4 {
		t.Errorf("the last is %d, of none %d", l.Last(), none.Last())
	}
	l.Reset()
	l.Add(result.Event{})
	if got, _ := l.After(t.Context(), 0, 0); len(got) != 1 || got[0].Sequence != 1 {
		t.Errorf("after a new start: %v", got)
	}
}
