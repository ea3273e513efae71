// Package store keeps the data of an embedded deployment: collections with their records and indexes, the oplog,
// transactions with their locks, and sessions with the results of their retryable writes. It does not know commands.
// Package commands uses it through a Work, in one way down and one way up:
//
//	Begin   takes the session's turn and finds its transaction or its retryable write
//	Update  locks the store, and waits while another transaction has locked the data to be written
//	  Tx    changes collections, and logs and records the changes; an error undoes them
//	End     passes the turn on
//
// One lock guards everything in a Store. View holds it shared and Update exclusively, and both release it when their
// function panics. Unless they say otherwise, the methods of a Tx and of a Collection are called within such a
// function only. Records are immutable and may be read at any time.
package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Store is the data of a deployment, which all of its servers share, as if replication took no time. Its methods may be
// called concurrently.
type Store struct {
	logged bool           // there is an oplog
	began  bson.Timestamp // the first time

	mu          sync.RWMutex
	databases   map[string][]*Collection // in order of creation
	clock       clock                    // time of the last write or periodic no-op; written only with mu held
	clusterTime clock                    // newest cluster time, of this deployment or from clients
	oplog       oplog
	sessions    map[string]*session
	term        int64         // the present term; writes that began in an earlier one do not commit
	changed     chan struct{} // closed and replaced at each write and at the end of each transaction
	locks       map[lockKey]*transaction
	dropping    [][2]string // databases and names of the collections to drop when no transaction uses them
}

// New returns an empty store. With logged it has an oplog, which transactions, retryable writes and change streams
// need.
func New(logged bool) *Store {
	s := &Store{
		logged:    logged,
		databases: map[string][]*Collection{},
		sessions:  map[string]*session{},
		changed:   make(chan struct{}),
		locks:     map[lockKey]*transaction{},
	}
	s.began = s.tick()
	return s
}

// Logged reports whether the store has an oplog.
func (s *Store) Logged() bool { return s.logged }

// OperationTime returns the time of the latest write or of the no-op that a primary writes every ten seconds. It
// never decreases.
//
// Every reply needs it, so it does not wait for writes: it postpones the no-op if the data is locked.
func (s *Store) OperationTime() bson.Timestamp {
	if uint32(time.Now().Unix()) >= s.Now().T+10 && s.mu.TryLock() {
		defer s.mu.Unlock()
		if uint32(time.Now().Unix()) >= s.Now().T+10 {
			return s.tick()
		}
	}
	return s.Now()
}

// Now returns the time of the latest write or no-op.
func (s *Store) Now() bson.Timestamp { return s.clock.time() }

// ClusterTime advances the cluster time to the client's and returns it. The next write has a later time.
func (s *Store) ClusterTime(client bson.Timestamp) bson.Timestamp {
	now := s.Now()
	return s.clusterTime.next(func(known bson.Timestamp) bson.Timestamp { return latest(known, client, now) })
}

func latest(times ...bson.Timestamp) bson.Timestamp {
	return slices.MaxFunc(times, bson.Timestamp.Compare)
}

// clock is an atomic timestamp.
type clock struct{ packed atomic.Uint64 }

func (c *clock) time() bson.Timestamp {
	p := c.packed.Load()
	return bson.Timestamp{T: uint32(p >> 32), I: uint32(p)}
}

// next atomically replaces the time by a function of it and returns the new time.
func (c *clock) next(after func(bson.Timestamp) bson.Timestamp) bson.Timestamp {
	for {
		now := c.time()
		t := after(now)
		if c.packed.CompareAndSwap(uint64(now.T)<<32|uint64(now.I), uint64(t.T)<<32|uint64(t.I)) {
			return t
		}
	}
}

// tick advances the clock beyond the cluster time and returns the new time.
func (s *Store) tick() bson.Timestamp {
	now := uint32(time.Now().Unix())
	return s.clock.next(func(t bson.Timestamp) bson.Timestamp {
		t = latest(t, s.clusterTime.time())
		if now > t.T {
			return bson.Timestamp{T: now, I: 1}
		}
		return bson.Timestamp{T: t.T, I: t.I + 1}
	})
}

// Changed returns a channel that is closed at the next change.
func (s *Store) Changed() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}

// announce wakes all waiters.
func (s *Store) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}
