package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/server"
)

// Codes of the errors that replSetInitiate may have here.
const (
	codeNodeNotFound      = 74
	codeInvalidConfig     = 93
	codeOperationFailed   = 96
	codeAlreadyInitiating = 109
)

// initiated serves replSetInitiate: it starts the host of the set, which
// invites the members, this process among them.
func (f *front) initiated(ctx context.Context, config bson.Raw) error {
	set, err := server.ParseSetConfig(config, f.o.Profile)
	if err != nil {
		return err
	}
	if set.Name != f.o.ReplSet {
		return command.Errorf(codeInvalidConfig, "Attempting to initiate a replica set with name %s, but command line reports %s; rejecting", set.Name, f.o.ReplSet)
	}
	if !f.initiating.TryLock() {
		return command.Errorf(codeAlreadyInitiating, "replSetInitiate is running already")
	}
	defer f.initiating.Unlock()
	if err := f.found(ctx, set, config); err != nil {
		return err
	}
	f.joining.Lock() // if the invitation is being taken, wait for it
	defer f.joining.Unlock()
	if f.tell().State != serves {
		return command.Errorf(codeOperationFailed, "the host of the set did not invite this member")
	}
	return nil
}

// found asks the members and starts the host.
func (f *front) found(ctx context.Context, set server.SetConfig, config bson.Raw) error {
	ctx, cancel := context.WithTimeout(ctx, gathering)
	defer cancel()
	self, err := f.quorum(ctx, set)
	if err != nil {
		return err
	}
	w, err := f.env.spawn(ctx, spec{
		Version: f.o.Profile.Name, Set: config, First: self, ConfigServer: f.o.ConfigServer, NoScripting: f.o.NoScripting,
	}, f.journal.file)
	if err != nil {
		return command.Errorf(codeOperationFailed, "%s", err)
	}
	if _, err := ask(ctx, w.Host, request{Kind: askGather, Token: w.Token}); err != nil {
		w.end()
		return command.Errorf(codeOperationFailed, "the members did not gather: %s", err)
	}
	return nil
}

// quorum asks every member whether it may be one, and finds this process among
// them.
func (f *front) quorum(ctx context.Context, set server.SetConfig) (self string, err error) {
	var failed []string
	for _, m := range set.Members {
		each, cancel := context.WithTimeout(ctx, answering)
		a, err := ask(each, m.Host, request{Kind: askState})
		cancel()
		switch {
		case err != nil:
			failed = append(failed, fmt.Sprintf("%s failed with %s", m.Host, err))
		case a.ID == f.id:
			self = m.Host
		case a.Set != set.Name:
			failed = append(failed, fmt.Sprintf("%s failed with our set name of %s does not match theirs, %q", m.Host, set.Name, a.Set))
		case a.State != waits:
			failed = append(failed, fmt.Sprintf("%s failed with it is a member of a set already", m.Host))
		}
	}
	if len(failed) > 0 {
		return "", command.Errorf(codeNodeNotFound, "replSetInitiate quorum check failed because not all proposed set members responded affirmatively: %s",
			strings.Join(failed, ", "))
	}
	if self == "" {
		return "", command.Errorf(codeInvalidConfig, "No host described in new configuration with {version: 1, term: 0} for replica set %s maps to this node", set.Name)
	}
	return self, nil
}

// memory is what a file beside the data keeps of the host that has them.
type memory struct {
	whereabouts
	Member string `json:"member"`
	Set    string `json:"set"`
}

// stateFile is that file, "" without a folder for data.
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

// remember writes it.
func (f *front) remember(w whereabouts, member string) error {
	name := f.stateFile()
	if name == "" {
		return nil
	}
	text, err := json.Marshal(memory{w, member, f.o.ReplSet})
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// forget removes it.
func (f *front) forget() {
	if name := f.stateFile(); name != "" {
		_ = os.Remove(name) // it may be gone
	}
}

// errOtherSet refuses data of another set.
var errOtherSet = errors.New("the data of dbpath belong to another replica set, or to none")

// again joins the host that has the data, if there is one that has kept them.
func (f *front) again() (*forwarder, error) {
	name := f.stateFile()
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var m memory
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil && m.Set != f.o.ReplSet {
		return nil, errOtherSet
	}
	var fw *forwarder
	if err == nil {
		fw, err = f.join(f.ctx, m.whereabouts, m.Member)
	}
	if err != nil {
		f.journal.Log(server.Entry{Severity: "W", Component: "STORAGE", Context: "initandlisten", Message: "The data of this server are gone: they lived in memory",
			Attr: bson.D{{Key: "error", Value: err.Error()}}})
		f.forget()
		return nil, nil
	}
	return fw, nil
}

// alone starts a standalone.
func (f *front) alone(ctx context.Context) error {
	fw, err := f.again()
	if err == nil && fw == nil {
		var w whereabouts
		if w, err = f.env.spawn(ctx, spec{Version: f.o.Profile.Name, NoScripting: f.o.NoScripting}, f.journal.file); err == nil {
			if fw, err = f.join(ctx, w, f.address()); err != nil {
				w.end()
			}
		}
	}
	if err == nil {
		f.become(standalone, fw)
	}
	return err
}

// member starts a member of a replica set: one that comes again, or one that
// waits.
func (f *front) member() error {
	fw, err := f.again()
	switch {
	case err != nil:
		return err
	case fw != nil:
		f.become(serves, fw)
	default:
		f.await()
	}
	return nil
}

// searching is the time between two looks for the config servers.
const searching = 100 * time.Millisecond

// route finds the config servers and becomes a mongos of their cluster. It
// returns when it is one, or when the process ends.
func (f *front) route() {
	set, hosts, _ := strings.Cut(f.o.ConfigDB, "/")
	tick := time.NewTicker(searching)
	defer tick.Stop()
	said := ""
	for {
		err := f.find(set, strings.Split(hosts, ","))
		if err == nil {
			return
		}
		if text := err.Error(); text != said {
			said = text
			f.journal.Log(server.Entry{Severity: "W", Component: "SHARDING", ID: 23834, Context: "mongosMain", Message: "Error initializing sharding state, sleeping for 2 seconds and retrying",
				Attr: bson.D{{Key: "error", Value: text}}})
		}
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *front) find(set string, hosts []string) error {
	var errs []error
	for _, host := range hosts {
		ctx, cancel := context.WithTimeout(f.ctx, answering)
		a, err := ask(ctx, host, request{Kind: askState})
		cancel()
		switch {
		case err != nil:
		case a.Set != set:
			err = fmt.Errorf("%s belongs to replica set %q", host, a.Set)
		case a.State != serves:
			err = fmt.Errorf("%s is not initiated", host)
		case !a.ConfigServer:
			err = fmt.Errorf("%s is no config server", host)
		default:
			var fw *forwarder
			if fw, err = f.join(f.ctx, whereabouts{Host: a.Host, Token: a.Token}, f.address()); err == nil {
				f.become(routes, fw)
				return nil
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
