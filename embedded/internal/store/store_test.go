package store

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOplogSizeIsLimited(t *testing.T) {
	var o oplog
	e := Entry{New: &Record{Raw: make(bson.Raw, 1<<20)}}
	for i := range 1000 {
		e.TS.I = uint32(i)
		o.append(e)
		if o.bytes > 2*MaxOplogBytes {
			t.Fatalf("%d bytes after %d entries", o.bytes, i+1)
		}
	}
	o.truncate(o.Next() - 1)
	sum := 0
	for i := range o.Entries {
		sum += o.Entries[i].bytes()
	}
	if first := o.Entries[0].TS; sum != o.bytes || o.Next() != 999 || first.I != o.From.I+1 {
		t.Errorf("%d bytes of %d, next is %d, the first is %v after %v", o.bytes, sum, o.Next(), first, o.From)
	}
}

func TestSessionsAreLimited(t *testing.T) {
	s := New(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range 3 * MaxSessions {
		s.session(fmt.Sprint(i))
	}
	if n := len(s.sessions); n > MaxSessions {
		t.Errorf("%d sessions", n)
	}
}

// TestOperationTimeDoesNotWait gets the operation time while the data is locked.
func TestOperationTimeDoesNotWait(t *testing.T) {
	s := New(true)
	s.clock.next(func(bson.Timestamp) bson.Timestamp { return bson.Timestamp{T: 1} }) // a no-op is due
	s.mu.Lock()
	defer s.mu.Unlock()
	got := make(chan bson.Timestamp, 1)
	go func() { got <- s.OperationTime() }()
	testkit.Receive(t, "the time", got)
}
