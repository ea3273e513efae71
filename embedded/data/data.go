// Package data stores the data of an embedded deployment and implements the commands that read and write it:
// databases, collections, indexes, cursors, change streams, transactions and the records of retryable writes.
//
// A deployment has one Data, shared by all of its members or mongoses, as if replication took no time. The
// protocol side gets the table of commands from Rows and dispatches requests to it.
package data

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Options describe the deployment. Without Sharded and ReplicaSet it is a standalone.
type Options struct {
	// Sharded deployments have config.shards. Sharded and ReplicaSet deployments have an oplog, transactions,
	// retryable writes and change streams.
	Sharded    bool
	ReplicaSet bool
	// ShardName and ShardHost identify the only shard of a sharded deployment, such as "s0" and "set/host:port".
	// The defaults are "s0" and "s0/localhost:27310".
	ShardName, ShardHost string
	NoShard              bool // config.shards is empty: shards are added by command
	NoScripting          bool // disables server-side JavaScript
}

// Data is the data of one deployment. All methods may be called concurrently.
type Data struct {
	opts Options

	mu          sync.RWMutex
	databases   map[string][]*collection // in order of creation
	clock       clock                    // time of the last write or periodic no-op; written only with mu held
	clusterTime clock                    // newest cluster time, including those from clients
	oplog       oplog
	sessions    map[string]*session
	nextRID     int64
	term        int64         // the present term; writes that began in an earlier one do not commit
	changed     chan struct{} // closed and replaced at each write and at the end of each transaction
	locks       map[lockKey]*transaction

	cursorMu       sync.Mutex // guards the fields below; locked before mu, never after
	cursors        map[int64]*cursor
	cursorsChecked time.Time               // last check for idle cursors
	recent         map[recentKey]time.Time // last use of sessions
}

// New returns the data of a new deployment.
func New(opts Options) *Data {
	opts.ShardName = cmp.Or(opts.ShardName, "s0")
	opts.ShardHost = cmp.Or(opts.ShardHost, opts.ShardName+"/localhost:27310")
	d := &Data{
		opts:      opts,
		databases: map[string][]*collection{},
		sessions:  map[string]*session{},
		changed:   make(chan struct{}),
		locks:     map[lockKey]*transaction{},
		cursors:   map[int64]*cursor{},
		recent:    map[recentKey]time.Time{},
	}
	d.tick()
	d.seed()
	return d
}

// Scripting reports whether server-side JavaScript is enabled.
func (d *Data) Scripting() bool { return !d.opts.NoScripting }

// logged reports whether the deployment has an oplog.
func (d *Data) logged() bool { return d.opts.ReplicaSet || d.opts.Sharded }

// OperationTime returns the time of the latest write or of the no-op that a primary writes every ten seconds. It
// never decreases.
//
// Every reply needs it, so it does not wait for writes: it postpones the no-op if the data is locked.
func (d *Data) OperationTime() bson.Timestamp {
	if uint32(time.Now().Unix()) >= d.clock.time().T+10 && d.mu.TryLock() {
		defer d.mu.Unlock()
		if uint32(time.Now().Unix()) >= d.clock.time().T+10 {
			return d.tick()
		}
	}
	return d.clock.time()
}

// ClusterTime advances the cluster time to the client's and returns it. The next write has a later time.
func (d *Data) ClusterTime(client bson.Timestamp) bson.Timestamp {
	now := d.clock.time()
	return d.clusterTime.next(func(known bson.Timestamp) bson.Timestamp { return latest(known, client, now) })
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

// reading runs a function with the data locked for reading, changing with the data locked for writing. A panic
// releases the lock, because the server turns it into an error of the command and continues.
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

// EndSessions closes the cursors, aborts the transactions and deletes the records of sessions, given by their lsids.
func (d *Data) EndSessions(lsids []bson.Raw) {
	keys := sessionKeys(lsids)
	d.endSessions(func(key string) bool { return keys[key] }, true)
}

// KillSessions closes the cursors and aborts the transactions of sessions, or of all sessions if lsids is empty.
// Records of retryable writes remain.
func (d *Data) KillSessions(lsids []bson.Raw) {
	keys := sessionKeys(lsids)
	d.endSessions(func(key string) bool { return len(keys) == 0 || keys[key] }, false)
}

// EndTerm aborts the open transactions of a term and prevents its waiting writes.
func (d *Data) EndTerm(term int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.term = term + 1
	for _, s := range d.sessions {
		d.abort(s.txn)
	}
	d.announce()
}

// tick advances the clock beyond the cluster time and returns the new time. The caller holds mu.
func (d *Data) tick() bson.Timestamp {
	now := uint32(time.Now().Unix())
	return d.clock.next(func(t bson.Timestamp) bson.Timestamp {
		t = latest(t, d.clusterTime.time())
		if now > t.T {
			return bson.Timestamp{T: now, I: 1}
		}
		return bson.Timestamp{T: t.T, I: t.I + 1}
	})
}

// announce wakes all waiters. The caller holds mu.
func (d *Data) announce() {
	close(d.changed)
	d.changed = make(chan struct{})
}
