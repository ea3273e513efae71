package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/server"
)

func (f *front) begin(ctx context.Context) error {
	if f.o.Mongos {
		f.work.Go(f.route)
		return nil
	}
	rejoined, err := f.rejoin()
	switch {
	case err != nil || rejoined:
		return err
	case f.o.ReplSet == "":
		return f.found(ctx, spec{Version: f.o.Profile.Name}, f.address())
	}
	return f.wait()
}

// found starts a host and joins it first.
func (f *front) found(ctx context.Context, s spec, self string) error {
	w, end, err := spawn(ctx, f.env.Self, s, f.log.file)
	if err != nil {
		return err
	}
	if err := f.join(ctx, w, self); err != nil {
		end()
		return err
	}
	return nil
}

// initiate serves replSetInitiate: it starts the host of the set and joins it as
// the first member. The host invites the others.
func (f *front) initiate(ctx context.Context, config bson.Raw) error {
	set, err := server.ParseSetConfig(config)
	if err != nil {
		return err
	}
	if set.Name != f.o.ReplSet {
		return command.Errorf(command.CodeInvalidReplicaSetConfig,
			"Attempting to initiate a replica set with name %s, but command line reports %s; rejecting", set.Name, f.o.ReplSet)
	}
	f.joining.Lock()
	defer f.joining.Unlock()
	if f.describe().State != stateWaiting {
		return command.Errorf(command.CodeOperationFailed, "the process has become a member of a set")
	}
	self, err := f.quorum(ctx, set)
	if err != nil {
		return err
	}
	err = f.found(ctx, spec{Version: f.o.Profile.Name, Set: config, ConfigServer: f.o.ConfigServer}, self)
	if err != nil {
		return command.Errorf(command.CodeOperationFailed, "%s", err)
	}
	return nil
}

// quorum asks every member whether it may be one, and finds this process among
// them.
func (f *front) quorum(ctx context.Context, set server.SetConfig) (self string, err error) {
	var failed []string
	for _, m := range set.Members {
		a, err := ask(ctx, m.Host, request{Kind: askState})
		switch {
		case err != nil:
			failed = append(failed, fmt.Sprintf("%s failed with %s", m.Host, err))
		case a.ID == f.id:
			self = m.Host
		case a.Set != set.Name || a.State != stateWaiting:
			failed = append(failed, fmt.Sprintf("%s failed with it does not wait for the configuration of %s", m.Host, set.Name))
		}
	}
	if len(failed) > 0 {
		return "", command.Errorf(command.CodeNodeNotFound,
			"replSetInitiate quorum check failed because not all proposed set members responded affirmatively: %s",
			strings.Join(failed, ", "))
	}
	if self == "" {
		return "", command.Errorf(command.CodeInvalidReplicaSetConfig,
			"No host described in new configuration with {version: 1, term: 0} for replica set %s maps to this node", set.Name)
	}
	return self, nil
}

// takeInvitation joins the host that invites this process.
func (f *front) takeInvitation(q request) error {
	f.joining.Lock()
	defer f.joining.Unlock()
	if f.describe().State != stateWaiting || q.Set != f.o.ReplSet {
		return errors.New("the process does not wait for the configuration of " + q.Set)
	}
	return f.join(f.ctx, q.Host, q.Member)
}

// join takes the process's seat at a host, which serves its clients from then on. Those
// that it has served itself are disconnected when they have their answers.
func (f *front) join(ctx context.Context, w whereabouts, member string) error {
	control, in, a, err := dial(ctx, w.Address, request{Kind: askJoin, Host: w, Member: member, Seat: &seat{
		Router: f.o.Mongos, Access: f.o.AccessControl, Parameters: f.o.Parameters, Arguments: f.o.Arguments,
		PID: f.env.PID, StateFile: f.stateFile(),
	}})
	if err != nil {
		return err
	}
	if err := f.remember(w, member); err != nil {
		_ = control.Close()
		return err
	}
	state := stateOther
	if f.o.ReplSet != "" {
		state = stateMember
	}
	f.become(state, w, func(client net.Conn, balanced bool) {
		if balanced {
			f.forward(client, a.Balanced)
		} else {
			f.forward(client, a.Clients)
		}
	})
	if f.waiting != nil {
		f.waiting.Retire()
	}
	f.work.Go(func() { f.attend(control, in) })
	return nil
}

// seatInSet is the content of a file beside the data: which host has them, and
// for which member.
type seatInSet struct {
	Host   whereabouts `json:"host"`
	Member string      `json:"member"`
	Set    string      `json:"set"`
}

// stateFile is the path of that file, "" without a folder for data.
func (f *front) stateFile() string {
	if f.o.DBPath == "" {
		return ""
	}
	path, err := filepath.Abs(filepath.Join(f.o.DBPath, "utr-host.json"))
	if err != nil {
		return ""
	}
	return path
}

func (f *front) remember(w whereabouts, member string) error {
	name := f.stateFile()
	if name == "" {
		return nil
	}
	text, err := json.Marshal(seatInSet{w, member, f.o.ReplSet})
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// rejoin joins the host of the state file, if there is one, and the host has not ended.
func (f *front) rejoin() (bool, error) {
	name := f.stateFile()
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	var s seatInSet
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Set != f.o.ReplSet {
		return false, errors.New("the data of dbpath belong to another replica set, or to none")
	}
	if err == nil {
		err = f.join(f.ctx, s.Host, s.Member)
	}
	if err != nil {
		f.log.add("The data of this server, which lived in memory, are gone", attributes{"error": err.Error()})
		_ = os.Remove(name) // it may be gone
	}
	return err == nil, nil
}

// searching is the time between two looks for the config servers.
const searching = 100 * time.Millisecond

// route finds the config servers and becomes a mongos of their cluster. It
// returns when it is one, or when the process ends.
func (f *front) route() {
	tick := time.NewTicker(searching)
	defer tick.Stop()
	said := ""
	for {
		err := f.find()
		if err == nil {
			return
		}
		if text := err.Error(); text != said {
			said = text
			f.log.add("Error initializing sharding state, retrying", attributes{"error": text})
		}
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// find joins the host of the config servers.
func (f *front) find() error {
	set, hosts, _ := strings.Cut(f.o.ConfigDB, "/")
	var errs []error
	for _, host := range strings.Split(hosts, ",") {
		a, err := ask(f.ctx, host, request{Kind: askState})
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
