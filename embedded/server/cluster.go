// Package server is the protocol side of the embedded deployment: sockets and
// connections, the handshake, authentication, fail points, sessions, what a
// replica set reports about itself, and the checks that every command passes
// before it runs. The commands themselves come as a table: this package has
// the rows for what concerns the protocol, a Backend those for data.
package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// Backend is the data of a deployment, shared by its servers. Its methods are
// called concurrently.
type Backend interface {
	// Rows are the commands that it serves.
	Rows() []command.Row
	// OperationTime is the cluster's latest time.
	OperationTime() bson.Timestamp
	// ClusterTime is the latest time that it has heard of, be it by this one.
	ClusterTime(heard bson.Timestamp) bson.Timestamp
	// EndSessions forgets sessions: their transactions and cursors. The ids
	// are lsid documents.
	EndSessions(lsids []bson.Raw)
	// KillSessions aborts what runs in sessions, nil meaning in all.
	KillSessions(lsids []bson.Raw)
	// Scripting reports whether it executes JavaScript.
	Scripting() bool
	// EndTerm ends what the primary of a term has begun: open transactions, and writes
	// that still run.
	EndTerm(term int64)
}

// Kind is the shape of a deployment.
type Kind uint8

// The kinds. A load balanced deployment is a sharded one with balancers in
// front.
const (
	Single Kind = iota
	ReplicaSet
	Sharded
	// Uninitiated is one mongod that was started with the name of a replica set
	// and waits for its configuration.
	Uninitiated
)

// Config describes a deployment's servers.
type Config struct {
	Kind    Kind
	Profile Profile
	SetName string  // of the replica set, or of the one shard
	Users   *Users  // who may authenticate; nil: nobody yet
	Backend Backend // required

	// Initiate serves replSetInitiate on an uninitiated server, which requires it.
	Initiate func(ctx context.Context, config bson.Raw) error
}

// Cluster is the servers of one deployment, and what they agree upon: who is
// primary. Its methods may be called concurrently.
type Cluster struct {
	Config
	commands map[string]*entry
	sequence *failpoint.Registry
	log      serverLog
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	members []*Server // in the order of their addition
	primary *Server   // nil if there is none
	term    int64
	set     SetConfig // of a replica set
	layout  *layout   // of set
}

// NewCluster makes a deployment without servers. Close it.
func NewCluster(config Config) *Cluster {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cluster{Config: config, ctx: ctx, cancel: cancel, commands: map[string]*entry{}, layout: &layout{}, sequence: failpoint.NewSequence()}
	if c.Users == nil {
		c.Users = new(Users)
	}
	rows := protocolRows()
	for _, row := range config.Backend.Rows() {
		rows = append(rows, entry{Row: row, own: func(x *exchange) (bson.D, error) { return row.Run(&x.request) }})
	}
	for i := range rows {
		row := &rows[i]
		for _, name := range append([]string{row.Name}, row.Aliases...) {
			c.commands[name] = row
		}
	}
	return c
}

// closePatience is how long commands may take to notice that they are to end.
const closePatience = 30 * time.Second

// Close ends every server, connection and command, and waits for them. An
// error reports that some did not end.
func (c *Cluster) Close() error {
	c.mu.Lock()
	c.closed = true
	members := slices.Clone(c.members)
	c.mu.Unlock()
	c.cancel()
	var errs []error
	for _, s := range members {
		errs = append(errs, s.stop())
		s.letGo()
	}
	ended := make(chan struct{})
	go func() {
		c.work.Wait()
		close(ended)
	}()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		errs = append(errs, fmt.Errorf("waited %v for the connections of the embedded deployment to end", closePatience))
	}
	return errors.Join(errs...)
}

// find gives the row of a command on a server in a role, nil if it has none.
func (c *Cluster) find(name string, role command.Role) *entry {
	row := c.commands[name]
	if row == nil || c.Profile.Wire < row.MinWire || row.MaxWire > 0 && c.Profile.Wire > row.MaxWire {
		return nil
	}
	if role == command.Uninitiated {
		role = command.Secondary // which it will be
	}
	if len(row.Topologies) > 0 && !slices.Contains(row.Topologies, role) {
		return nil
	}
	return row
}
