package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

func (f *front) begin() error {
	rejoined, err := f.rejoin()
	switch {
	case err != nil || rejoined || f.o.Mongos:
		return err
	case f.o.ReplSet == "":
		return f.startHost(f.ctx, spec{Version: f.o.Version.Name}, f.address())
	}
	return f.wait()
}

// initiate executes replSetInitiate: it starts the host and joins it. The host invites the other members.
func (f *front) initiate(config bson.Raw) error {
	if len(config) <= len(value.Encode(bson.D{})) { // the default configuration has only this member
		config = value.Encode(value.Doc("_id", f.o.ReplSet, "version", int32(1), "members",
			bson.A{value.Doc("_id", int32(0), "host", f.address())}))
	}
	set, err := server.ParseSetConfig(config)
	if err != nil {
		return err
	}
	if set.Name != f.o.ReplSet {
		return fault.Errorf(fault.InvalidReplicaSetConfig,
			"Attempting to initiate a replica set with name %s, but command line reports %s; rejecting", set.Name, f.o.ReplSet)
	}
	f.joining.Lock()
	defer f.joining.Unlock()
	if f.describe().State != stateWaiting {
		return fault.Errorf(fault.OperationFailed, "the process is already a member of a replica set")
	}
	self, err := f.quorum(f.ctx, set)
	if err != nil {
		return err
	}
	err = f.startHost(f.ctx, spec{Version: f.o.Version.Name, Set: config, ConfigServer: f.o.ConfigServer}, self)
	if err != nil {
		return fault.Errorf(fault.OperationFailed, "%s", err)
	}
	return nil
}

// quorum checks that every member is waiting for this set's configuration, and returns the address of this process.
func (f *front) quorum(ctx context.Context, set server.SetConfig) (self string, err error) {
	var failed []string
	for _, m := range set.Members {
		a, err := exchange(ctx, m.Host, request{Kind: kindState})
		switch {
		case err != nil:
			failed = append(failed, fmt.Sprintf("%s failed with %s", m.Host, err))
		case a.ID == f.id:
			self = m.Host
		case a.Set != set.Name || a.State != stateWaiting:
			failed = append(failed, fmt.Sprintf("%s is not waiting for the configuration of %s", m.Host, set.Name))
		}
	}
	if len(failed) > 0 {
		return "", fault.Errorf(fault.NodeNotFound,
			"replSetInitiate quorum check failed because not all proposed set members responded affirmatively: %s",
			strings.Join(failed, ", "))
	}
	if self == "" {
		return "", fault.Errorf(fault.InvalidReplicaSetConfig,
			"No host described in new configuration with {version: 1, term: 0} for replica set %s maps to this node", set.Name)
	}
	return self, nil
}

func (f *front) acceptInvitation(q request) error {
	f.joining.Lock()
	defer f.joining.Unlock()
	if f.describe().State != stateWaiting || q.Set != f.o.ReplSet {
		return errors.New("the process is not waiting for the configuration of " + q.Set)
	}
	return f.join(f.ctx, q.Host, q.Member)
}

// join joins a host, which serves the clients from then on. Clients in the lobby are disconnected after their replies.
func (f *front) join(ctx context.Context, w location, member string) error {
	q := request{Kind: kindJoin, Set: f.o.ReplSet, Host: w, Member: member, Server: f.o}
	control, in, _, err := dial(ctx, w.Address, q)
	if err != nil {
		return err
	}
	if err := f.saveState(q); err != nil {
		_ = control.Close()
		return err
	}
	state := stateOther
	if f.o.ReplSet != "" {
		state = stateMember
	}
	f.setState(state, w, func(client net.Conn, balanced bool) {
		f.forward(client, request{Kind: kindClient, Host: w, Member: member, Balanced: balanced})
	})
	f.lobby.close()
	f.work.Go(func() { f.watchHost(control, in) })
	return nil
}

// saveState saves how to join the host again.
func (f *front) saveState(q request) error {
	name := f.o.stateFile()
	if name == "" {
		return nil
	}
	text, err := json.Marshal(q)
	if err == nil {
		err = os.WriteFile(name+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	return err
}

// rejoin joins the host of the state file, if both exist.
func (f *front) rejoin() (bool, error) {
	text, err := os.ReadFile(f.o.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	var q request
	if err == nil {
		err = json.Unmarshal(text, &q)
	}
	if err == nil && q.Set != f.o.ReplSet {
		return false, errors.New("the data in dbpath does not belong to this replica set")
	}
	if err == nil {
		err = f.join(f.ctx, q.Host, q.Member)
	}
	if err != nil {
		f.log.Info("The data of this server, which was in memory, is lost", slog.Group("attr", "error", err.Error()))
		_ = os.Remove(f.o.stateFile())
	}
	return err == nil, nil
}

// joinAsRouter joins the host of the config servers as a mongos. It retries until it succeeds or the process ends.
func (f *front) joinAsRouter() {
	logged := ""
	repeat(f.ctx, retryInterval, func() bool {
		err := f.joinConfigServers()
		if err != nil && err.Error() != logged {
			logged = err.Error()
			f.log.Info("Error initializing sharding state, retrying", slog.Group("attr", "error", logged))
		}
		return err == nil
	})
}

func (f *front) joinConfigServers() error {
	set, hosts, _ := strings.Cut(f.o.ConfigDB, "/")
	var errs []error
	for _, host := range strings.Split(hosts, ",") {
		a, err := exchange(f.ctx, host, request{Kind: kindState})
		if err == nil && (a.Set != set || a.State != stateMember || !a.ConfigServer) {
			err = fmt.Errorf("%s is not an initiated config server of %s", host, set)
		}
		if err == nil {
			err = f.join(f.ctx, a.Host, f.address())
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
