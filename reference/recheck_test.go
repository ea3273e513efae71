package reference

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A server that a state change error made Unknown is looked at again at once,
// not with its next heartbeat.
func TestStateChangesAreCheckedAtOnce(t *testing.T) {
	for _, row := range []struct {
		reason, kind string
		servers      int
		code         int32
	}{
		{"the only server is not primary", "single", 1, 10107},
		{"the only server is shutting down, so that its pool is cleared too", "single", 1, 91},
		{"the only mongos is recovering", "sharded", 1, 11600},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s := script(t, row.kind, row.servers)
			s.on("find", fails(row.code))
			b := open(t, s, Options{Heartbeat: time.Hour}, bson.D{{Key: "serverSelectionTimeoutMS", Value: 5000}})
			if out := b.do("collection", "find", bson.D{{Key: "filter", Value: bson.D{}}}); out.Err != nil {
				t.Fatal(out.Err)
			}
			if got, want := b.story(), "find> find! find> find<"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// Immediate checks of a server keep their distance, and at most one waits.
func TestImmediateChecksKeepTheirDistance(t *testing.T) {
	const interval = 100 * time.Millisecond
	start := time.Now()
	s := newSockets()
	for _, row := range []struct {
		reason, address string
		after, wait     time.Duration
		ours            bool
	}{
		{"the first one is free", "a", 0, 0, true},
		{"another server has its own count", "b", 0, 0, true},
		{"too early: it waits for its time", "a", 30 * time.Millisecond, 70 * time.Millisecond, true},
		{"one is waiting already", "a", 60 * time.Millisecond, 0, false},
		{"the one that waited counts", "a", 150 * time.Millisecond, 50 * time.Millisecond, true},
		{"long after, it is free again", "a", time.Second, 0, true},
	} {
		wait, ours := s.appoint(row.address, start.Add(row.after), interval)
		if wait != row.wait || ours != row.ours {
			t.Errorf("%s: wait %v, ours %t, want %v, %t", row.reason, wait, ours, row.wait, row.ours)
		}
	}
}
