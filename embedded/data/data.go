// Package data is what an embedded deployment stores and how it answers the
// commands that read and write it: databases, collections, indexes, cursors,
// change streams, transactions and the records of retryable writes.
//
// One Data belongs to a deployment and is shared by all of its members or
// mongoses, as if replication took no time. The protocol side calls Rows for
// the table of commands and dispatches requests to them.
package data

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Options say what kind of deployment the data belongs to.
type Options struct {
	// Sharded deployments have config.shards, and their mongoses answer as
	// such. ReplicaSet deployments have an oplog, transactions, retryable
	// writes and change streams, and so have sharded ones. Neither is a
	// standalone.
	Sharded    bool
	ReplicaSet bool
	// ShardName and ShardHost name the one shard of a sharded deployment, as
	// "s0" and "set/host:port". Empty: "s0" and "s0/localhost:27310".
	ShardName, ShardHost string
	// NoShard leaves config.shards empty: shards are added by command.
	NoShard bool
	// NoScripting refuses what needs a script engine.
	NoScripting bool
}

// Data is the data of one deployment. All methods may be called concurrently.
type Data struct {
	opts Options

	mu        sync.RWMutex
	databases map[string][]*collection // in the order of their creation
	clock     clock                    // of the last write, or of a periodic no-op; changed with mu alone
	heard     clock                    // the newest that any client has sent
	oplog     oplog
	sessions  map[string]*session
	nextRID   int64
	term      int64 // writes that began in an earlier one do not commit
	// changed is closed and replaced at each write: those who wait for data
	// or for a transaction's end wait on it.
	changed chan struct{}
	// locks are the records that open transactions have written.
	locks map[lockKey]*transaction

	seen seen

	cursorMu sync.Mutex
	cursors  map[int64]*cursor
	// cursorsSeen is when idle cursors were looked for.
	cursorsSeen time.Time
}

// New is the data of a deployment, empty.
func New(opts Options) *Data {
	if opts.ShardName == "" {
		opts.ShardName = "s0"
	}
	if opts.ShardHost == "" {
		opts.ShardHost = opts.ShardName + "/localhost:27310"
	}
	d := &Data{
		opts:      opts,
		databases: map[string][]*collection{},
		sessions:  map[string]*session{},
		changed:   make(chan struct{}),
		locks:     map[lockKey]*transaction{},
		cursors:   map[int64]*cursor{},
		seen:      seen{last: map[seenKey]time.Time{}},
	}
	d.tick()
	d.seed()
	return d
}

// Scripting reports whether scripts are executed.
func (d *Data) Scripting() bool { return !d.opts.NoScripting }

// logged reports whether writes are logged: everywhere but on a standalone.
func (d *Data) logged() bool { return d.opts.ReplicaSet || d.opts.Sharded }

// OperationTime is the time of the latest write, or of the no-op that a
// primary writes every ten seconds. It never goes back.
//
// Every reply has it, so that it waits for no one: while something is written, the no-op
// can wait.
func (d *Data) OperationTime() bson.Timestamp {
	if uint32(time.Now().Unix()) >= d.clock.time().T+10 && d.mu.TryLock() {
		defer d.mu.Unlock()
		if uint32(time.Now().Unix()) >= d.clock.time().T+10 {
			return d.tick()
		}
	}
	return d.clock.time()
}

// ClusterTime is the newest time that the deployment has heard of: its own, or one
// that a client got elsewhere, such as this one. The next write is after it.
func (d *Data) ClusterTime(told bson.Timestamp) bson.Timestamp {
	now := d.clock.time()
	return d.heard.next(func(heard bson.Timestamp) bson.Timestamp { return latest(heard, told, now) })
}

func latest(times ...bson.Timestamp) bson.Timestamp {
	return slices.MaxFunc(times, bson.Timestamp.Compare)
}

// clock is a time that can be read and set without a lock.
type clock struct{ packed atomic.Uint64 }

func (c *clock) time() bson.Timestamp {
	p := c.packed.Load()
	return bson.Timestamp{T: uint32(p >> 32), I: uint32(p)}
}

func (c *clock) next(after func(bson.Timestamp) bson.Timestamp) bson.Timestamp {
	for {
		now := c.time()
		t := after(now)
		if c.packed.CompareAndSwap(uint64(now.T)<<32|uint64(now.I), uint64(t.T)<<32|uint64(t.I)) {
			return t
		}
	}
}

// reading runs a function with the data locked for reading, and changing with
// the data locked for writing. No lock outlives a panic: the server turns one
// into an error of its command, and the others work on.
func (d *Data) reading(f func()) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	f()
}

func (d *Data) changing(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// EndSessions forgets sessions, as the command of that name does: their
// cursors are closed and their transactions aborted. A session is given as the
// lsid that clients send.
func (d *Data) EndSessions(lsids []bson.Raw) {
	keys := sessionKeys(lsids)
	d.seen.forget(keys)
	d.endSessions(func(key string) bool { return keys[key] }, true)
}

// KillSessions ends the work of sessions without forgetting what they wrote:
// cursors are closed and open transactions aborted. No session given means
// all of them.
func (d *Data) KillSessions(lsids []bson.Raw) {
	keys := sessionKeys(lsids)
	d.endSessions(func(key string) bool { return len(keys) == 0 || keys[key] }, false)
}

// EndTerm ends what the primary of a term has begun: its successor knows nothing of open
// transactions, and what waits to be written is not.
func (d *Data) EndTerm(term int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.term = term + 1
	for _, s := range d.sessions {
		d.abortOpen(s)
	}
	d.announce()
}

// tick advances the clock and returns the new time. The caller holds mu.
func (d *Data) tick() bson.Timestamp {
	now := uint32(time.Now().Unix())
	return d.clock.next(func(t bson.Timestamp) bson.Timestamp {
		t = latest(t, d.heard.time())
		if now > t.T {
			return bson.Timestamp{T: now, I: 1}
		}
		return bson.Timestamp{T: t.T, I: t.I + 1}
	})
}

// announce wakes all who wait for a change. The caller holds mu.
func (d *Data) announce() {
	close(d.changed)
	d.changed = make(chan struct{})
}
