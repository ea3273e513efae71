package enginekit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/result"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func at(address string) result.Event {
	return result.Event{Type: result.PoolCleared, Address: address}
}

func TestEventLogAfter(t *testing.T) {
	l := NewEventLog(noon)
	for _, a := range []string{"a", "b", "c"} {
		l.Add(at(a))
	}
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
	l := NewEventLog(noon)
	if got, err := l.After(t.Context(), 0, time.Millisecond); len(got) != 0 || err != nil {
		t.Errorf("no event in time: got %v, %v", got, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.After(gone, 0, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	var readers sync.WaitGroup
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		readers.Go(func() {
			if got, err := l.After(soon, 0, time.Hour); len(got) != 1 || err != nil {
				t.Errorf("an event comes: got %v, %v", got, err)
			}
		})
	}
	l.Add(at("a"))
	readers.Wait()
}

func TestEventLogLatest(t *testing.T) {
	l := NewEventLog(noon)
	if l.Last() != 0 {
		t.Errorf("the last of none is %d", l.Last())
	}
	for _, a := range []string{"a", "b", "a", "c"} {
		l.Add(at(a))
	}
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
		if got, found := l.Latest(row.after, func(e result.Event) bool { return e.Address == row.address }); got.Sequence != row.want || found != (row.want > 0) {
			t.Errorf("%s: got number %d, %t, want %d", row.reason, got.Sequence, found, row.want)
		}
	}
	if l.Last() != 4 {
		t.Errorf("the last is %d", l.Last())
	}
	l.Reset()
	l.Add(at("d"))
	if got, _ := l.After(t.Context(), 0, 0); len(got) != 1 || got[0].Sequence != 1 {
		t.Errorf("after a new start: %v", got)
	}
}

// Numbers have no gap, and each reader sees each event once, whoever writes.
func TestEventLogTogether(t *testing.T) {
	const writers, each = 4, 200
	l := NewEventLog(noon)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range each {
				l.Add(at("a"))
			}
		})
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for seen := int64(0); seen < writers*each; {
		got, err := l.After(soon, seen, time.Hour)
		if err != nil {
			t.Fatalf("after %d: %v", seen, err)
		}
		for _, e := range got {
			if seen++; e.Sequence != seen {
				t.Fatalf("number %d follows %d", e.Sequence, seen-1)
			}
		}
	}
	writing.Wait()
}
